//! Reads and replaces the values at places. All places of one kind in a body are edited together, so that the
//! body is parsed once and serialised once.

use super::error::{Fault, FaultKind, PlaceError};
use super::message::Message;
use super::{Place, form, headers, json, multipart, xml};

/// Receives the number of a place and the value there. Returns the value to write instead, or `None`
/// to keep it.
pub(super) type Change<'a> = dyn FnMut(usize, &str) -> Option<String> + 'a;

/// What becomes of numbers in a JSON document that is written anew.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// A number that would change is an error.
    Exact,
    Rounded,
}

/// Places of one kind, with the numbers by which [`Change`] knows them.
pub(super) type Numbered<'a, T> = [(usize, &'a T)];

/// A change to a message: the new value of the header with this index, or the new body.
pub(super) enum Edit {
    Header(usize, String),
    Body(Vec<u8>),
}

/// Replaces the values at several places like [`Place::replace`]; `change` also receives their numbers. A
/// body is parsed once and serialised once, so that no error depends on a value that was written at
/// another place. An error names the first place of its kind.
pub fn replace_all(
    places: &[&Place],
    headers: &mut [(String, String)],
    body: &mut Vec<u8>,
    change: &mut Change<'_>,
) -> Result<bool, PlaceError> {
    let edits = edit(places, &Message { headers, body }, Numbers::Exact, change)?;
    Ok(apply(edits, headers, body))
}

/// Makes the changes, and returns true if there are any.
pub(super) fn apply(edits: Vec<Edit>, headers: &mut [(String, String)], body: &mut Vec<u8>) -> bool {
    let changed = !edits.is_empty();
    for edit in edits {
        match edit {
            Edit::Header(index, value) => headers[index].1 = value,
            Edit::Body(bytes) => *body = bytes,
        }
    }
    changed
}

/// Passes the value at each place to `change`, and returns the changes to the message. Changes nothing itself.
pub(super) fn edit(
    places: &[&Place],
    message: &Message,
    numbers: Numbers,
    change: &mut Change<'_>,
) -> Result<Vec<Edit>, PlaceError> {
    let mut edits = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let fault = |fault| place.fault(fault);
        match place {
            Place::Header(name) => {
                let edited = headers::edit_header(message.headers, name, &mut |value| change(number, value));
                edits.extend(edited.map_err(fault)?);
            }
            Place::Cookie(name) => {
                let edited = headers::edit_cookie(message.headers, name, &mut |value| change(number, value));
                edits.extend(edited.map_err(fault)?);
            }
            // All places of a kind are edited together with the first one.
            _ if places[..number].iter().any(|earlier| is_same_kind(earlier, place)) => {}
            _ if message.body.is_empty() => {}
            _ => edits.extend(edit_body(number, places, message, numbers, change).map_err(fault)?.map(Edit::Body)),
        }
    }
    // A body is of one kind, so two changed ones are two readings of it.
    let bodies = edits.iter().filter(|edit| matches!(edit, Edit::Body(_))).count();
    match places.first() {
        Some(place) if bodies > 1 => Err(place.fault(Fault::ambiguous())),
        _ => Ok(edits),
    }
}

fn is_same_kind(one: &Place, other: &Place) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Returns the body with the changes at all places that are of the same kind as the one with the
/// number `first`.
fn edit_body(
    first: usize,
    places: &[&Place],
    message: &Message,
    numbers: Numbers,
    change: &mut Change<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    fn numbered<'a, T: ?Sized>(places: &[&'a Place], key: impl Fn(&'a Place) -> Option<&'a T>) -> Vec<(usize, &'a T)> {
        places.iter().enumerate().filter_map(|(number, place)| Some((number, key(place)?))).collect()
    }
    let Message { headers, body } = *message;
    match places[first] {
        Place::Json(_) => {
            headers::expect_json(headers)?;
            let pointers = numbered(places, |place| if let Place::Json(tokens) = place { Some(tokens) } else { None });
            json::edit(body, &pointers, numbers, change)
        }
        Place::Form(_) => {
            headers::expect_form(headers)?;
            let names = numbered(places, |place| if let Place::Form(name) = place { Some(name) } else { None });
            form::edit(body, &names, change)
        }
        Place::Xml(_) => {
            headers::expect_xml(headers)?;
            let names = numbered(places, |place| if let Place::Xml(name) = place { Some(name) } else { None });
            xml::edit(body, &names, change)
        }
        Place::Part(_) => {
            let boundary = headers::boundary(headers)?;
            let names = numbered(places, |place| if let Place::Part(name) = place { Some(name) } else { None });
            multipart::edit(body, &boundary, &names, change)
        }
        Place::Body => {
            let text = std::str::from_utf8(body).map_err(|_| FaultKind::NotPlain)?;
            Ok(change(first, text).map(String::into_bytes))
        }
        Place::Header(_) | Place::Cookie(_) => Ok(None),
    }
}
