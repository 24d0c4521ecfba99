//! What a guest sees of the responses of an origin: a slot lists the places of a response that it shows, and a grant
//! lists the places that it drops.

use super::Policy;
use super::grant::Grant;
use super::object_reader::{ObjectReader, printable};
use super::slots::Capture;
use crate::destination::Destination;
use crate::place::Place;

/// The name of any list element in the pointers of `show`, and of any list element or object member
/// in those of `drop`.
pub const ANY: &str = "*";

/// What the grants of an origin hide in its responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenPlaces {
    /// True if a grant of the origin has slots, captures or `drop`, whether the guest declares
    /// them or not.
    pub hides_values: bool,
    /// The places that any grant of the origin drops.
    pub drop: Vec<Place>,
    /// The captures of all grants of the origin, for their methods and paths.
    pub captures: Vec<Capture>,
}

impl Policy {
    /// Returns what the grants of the destination's origin hide in its responses. All grants count,
    /// because a guest chooses the grant by the path of its request.
    pub fn hidden_places(&self, destination: &Destination) -> HiddenPlaces {
        hidden_places(self.http.iter().map(AsRef::as_ref).filter(|grant| grant.origin.matches(destination)))
    }
}

/// Returns what these grants hide in responses.
pub(super) fn hidden_places<'a>(grants: impl Iterator<Item = &'a Grant>) -> HiddenPlaces {
    let mut found = HiddenPlaces::default();
    for grant in grants {
        found.hides_values |= grant.hides_values;
        found.captures.extend(grant.captures.iter().cloned());
        for place in grant.drop.iter().filter(|place| !found.drop.contains(place)).cloned().collect::<Vec<_>>() {
            found.drop.push(place);
        }
    }
    found
}

/// Reads the places of a response at `key`, which may have `*` in their JSON pointers.
pub(super) fn read_places(reader: &mut ObjectReader<'_>, key: &'static str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (at, text) in reader.texts(key) {
        match text.parse::<Place>() {
            Ok(Place::Xml(element)) if element.starts_with('/') => {
                reader.problems().add(
                    at,
                    "is the path of an element, but elements of responses are found by their names alone",
                    PLACES,
                );
            }
            Ok(place @ (Place::Json(_) | Place::Xml(_) | Place::Header(_))) if !places.contains(&place) => {
                places.push(place);
            }
            Ok(Place::Json(_) | Place::Xml(_) | Place::Header(_)) => {
                reader.problems().add(at, "names a place again", "remove it");
            }
            Ok(_) => reader.problems().add(at, "is not a place that can be removed from a response", PLACES),
            Err(error) => {
                let what = format!("is not a place: {}", printable(&error.to_string()));
                reader
                    .problems()
                    .push(super::PolicyProblem { check: error.check(), ..super::PolicyProblem::new(at, what, PLACES) });
            }
        }
    }
    places
}

const PLACES: &str = "write `json:/a/*/b`, `xml:E` or `header:X`";

/// Returns true if a response that shows the first place could show the value at the second one:
/// they are the same, or one is within the other.
pub(super) fn shows(shown: &Place, slot: &Place) -> bool {
    match (shown, slot) {
        (Place::Json(shown), Place::Json(slot)) => {
            shown.iter().zip(slot).all(|(one, other)| one == ANY || one.eq_ignore_ascii_case(other))
        }
        (Place::Xml(shown), Place::Xml(slot)) => {
            // Of a path, the last name is the element's.
            slot.rsplit('/').next().is_some_and(|name| shown.eq_ignore_ascii_case(name))
        }
        // A server could read the body as a document and show its parts.
        (Place::Json(_) | Place::Xml(_), Place::Body) => true,
        (shown, slot) => shown == slot,
    }
}

/// The keys of agent settings below which there are secrets.
const SECRET_SETTINGS: [&str; 4] = ["blobstore", "env", "mbus", "registry"];

/// Returns true if a response that shows the place could show a value of agent settings, which are a JSON document.
pub(super) fn shows_settings(shown: &Place) -> bool {
    let is_key = |token: &String| SECRET_SETTINGS.iter().any(|key| key.eq_ignore_ascii_case(token));
    match shown {
        Place::Json(tokens) => tokens.iter().any(is_key),
        Place::Xml(name) => is_key(name),
        _ => false,
    }
}
