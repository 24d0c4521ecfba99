//! Cuts places out of the documents of responses: keeps some, or drops some.

use memchr::memmem;
use serde_json::{Map, Value};
use wasm_cpi_policy::ANY;
use wasm_cpi_policy::place::{Message, Place, expect_utf8, parse_json, remove_xml};

type Headers = Vec<(String, String)>;

/// The longest text that a slot shows. Places are for IDs and states, and not for what was sent.
const MAX_SHOWN: usize = 1024;

/// The format as which a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Empty,
    Json,
    Xml,
    Other,
}

/// Returns the kind of a body by its Content-Type, or by its first character if it has none.
pub(super) fn kind(headers: &[(String, String)], body: &[u8]) -> Kind {
    if body.is_empty() {
        return Kind::Empty;
    }
    let mut types = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    match (types.next(), types.next()) {
        (None, _) => sniffed(body),
        (Some(_), Some(_)) => Kind::Other,
        (Some((_, value)), None) => {
            let essence = value.split(';').next().unwrap_or_default().to_ascii_lowercase();
            match (essence.contains("json"), essence.contains("xml") && !essence.contains("html")) {
                (true, false) => Kind::Json,
                (false, true) => Kind::Xml,
                _ => Kind::Other,
            }
        }
    }
}

/// Returns the kind of a body by its first character.
pub(super) fn sniffed(body: &[u8]) -> Kind {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Kind::Empty,
        Some(b'{' | b'[' | b'"') => Kind::Json,
        Some(b'<') => Kind::Xml,
        Some(_) => Kind::Other,
    }
}

/// The body cannot be read, so it is unknown whether it holds a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Removes the places from a message. A document of a kind that no place is for is unreadable: it
/// may be the same document in another form, which the guest asked for.
pub(super) fn remove(places: &[Place], headers: &mut Headers, body: &mut Vec<u8>) -> Result<(), Unreadable> {
    headers.retain(|(name, _)| {
        let dropped = |place: &Place| matches!(place, Place::Header(header) if header.eq_ignore_ascii_case(name));
        !places.iter().any(dropped)
    });
    let in_json = places.iter().any(|place| matches!(place, Place::Json(_)));
    let in_xml = places.iter().any(|place| matches!(place, Place::Xml(_)));
    if !(in_json || in_xml) || body.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    match kind(headers, body) {
        Kind::Json if in_json && expect_utf8(headers).is_ok() => {
            let mut document = parse_json(body).map_err(|_| Unreadable)?;
            let pointers = || places.iter().filter_map(Place::pointer);
            if !pointers().any(|pointer| fits_root(pointer, &document)) {
                return Err(Unreadable);
            }
            let mut changed = false;
            for place in places {
                if let Place::Json(tokens) = place {
                    changed |= remove_json(&mut document, tokens);
                }
            }
            if changed {
                *body = document.to_string().into_bytes();
            }
            Ok(())
        }
        Kind::Xml if in_xml && expect_utf8(headers).is_ok() => {
            let dropped = |name: &str| {
                places.iter().any(|place| matches!(place, Place::Xml(element) if element.eq_ignore_ascii_case(name)))
            };
            if let Some(changed) = remove_xml(body, &dropped).map_err(|_| Unreadable)? {
                *body = changed;
            }
            Ok(())
        }
        _ => Err(Unreadable),
    }
}

/// Returns true if a pointer is for a document with such a root. A server that gets a list may return a list,
/// in which the places of an object are not found. A string may hold a whole document.
pub(super) fn fits_root(pointer: &[String], document: &Value) -> bool {
    match (document, pointer.first()) {
        (Value::Array(_), Some(first)) => first == ANY || is_index(first),
        (Value::Object(_), Some(first)) => first == ANY || !is_index(first),
        (Value::String(_), _) => false,
        _ => true,
    }
}

/// Returns true if the text holds the name of one of the places, in any case.
pub(super) fn may_hold<'a>(places: impl IntoIterator<Item = &'a Place>, body: &[u8]) -> bool {
    let text = body.to_ascii_lowercase();
    let name = |place: &Place| match place {
        Place::Json(tokens) => tokens.iter().rfind(|token| *token != ANY).cloned(),
        Place::Xml(element) => Some(element.clone()),
        _ => None,
    };
    let mut names = places.into_iter().filter_map(name);
    names.any(|name| memmem::find(&text, name.to_ascii_lowercase().as_bytes()).is_some())
}

/// Removes the values at a pointer with their subtrees. Returns true if there were any. Names are
/// compared without regard to ASCII case; elements of lists become null.
fn remove_json(value: &mut Value, tokens: &[String]) -> bool {
    let Some((first, rest)) = tokens.split_first() else { return false };
    let fits = |name: &str| first == ANY || first.eq_ignore_ascii_case(name);
    match value {
        Value::Object(fields) if rest.is_empty() => {
            let before = fields.len();
            fields.retain(|name, _| !fits(name));
            fields.len() < before
        }
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| fits(name))
            .fold(false, |removed, (_, field)| remove_json(field, rest) | removed),
        Value::Array(items) => {
            let here = items.iter_mut().enumerate().filter(|(index, _)| fits(&index.to_string()));
            here.fold(false, |removed, (_, item)| match rest.is_empty() {
                true => !std::mem::take(item).is_null() | removed,
                false => remove_json(item, rest) | removed,
            })
        }
        _ => false,
    }
}

/// Keeps the shown places and those that are captured later, and removes everything else. Texts at
/// shown places that are longer than an ID are removed as well.
pub(super) fn keep(shown: &[&Place], captured: &[&Place], headers: &mut Headers, body: &mut Vec<u8>) {
    if captured.contains(&&Place::Body) {
        // The whole body becomes a seal.
        headers.retain(|header| header.0.eq_ignore_ascii_case("content-type") || is_kept(header, shown, captured));
        return;
    }
    let document = match kind(headers, body) {
        Kind::Json => parse_json(body)
            .ok()
            .and_then(|document| kept_json(&document, shown, captured))
            .map(|kept| ("application/json", kept.to_string().into_bytes())),
        Kind::Xml => kept_xml(&Message { headers, body }, shown, captured).map(|kept| ("application/xml", kept)),
        Kind::Empty | Kind::Other => None,
    };
    headers.retain(|header| is_kept(header, shown, captured) && !header.0.eq_ignore_ascii_case("content-type"));
    *body = match document {
        Some((content_type, document)) => {
            headers.push(("content-type".to_owned(), content_type.to_owned()));
            document
        }
        None => Vec::new(),
    };
}

fn is_kept((name, value): &(String, String), shown: &[&Place], captured: &[&Place]) -> bool {
    let here = |place: &&Place| match place {
        Place::Header(header) => header.eq_ignore_ascii_case(name),
        Place::Cookie(_) => name.eq_ignore_ascii_case("set-cookie"),
        _ => false,
    };
    captured.iter().any(&here) || (value.len() <= MAX_SHOWN && shown.iter().any(here))
}

/// What is picked from a document.
#[derive(Clone, Copy)]
enum Picked {
    /// Shown places: texts of a bounded length. `*` means the elements of lists, and not for
    /// members of objects, because a server could choose a value as their names.
    Shown,
    /// Captured places, which become seals. They have no `*`.
    Captured,
}

fn places<'a>(shown: &[&'a Place], captured: &[&'a Place]) -> Vec<(&'a Place, Picked)> {
    let shown = shown.iter().map(|place| (*place, Picked::Shown));
    shown.chain(captured.iter().map(|place| (*place, Picked::Captured))).collect()
}

fn kept_json(document: &Value, shown: &[&Place], captured: &[&Place]) -> Option<Value> {
    let mut kept: Option<Value> = None;
    for (place, picked) in places(shown, captured) {
        if let Place::Json(tokens) = place
            && let Some(found) = pick(document, tokens, picked)
        {
            match &mut kept {
                Some(kept) => merge(kept, found),
                None => kept = Some(found),
            }
        }
    }
    let has_index = |place: &&Place| place.pointer().is_some_and(|tokens| tokens.iter().any(|token| is_index(token)));
    let is_numbered = shown.iter().chain(captured).any(has_index);
    if let Some(kept) = &mut kept {
        remove_gaps(kept, is_numbered);
    }
    kept
}

/// Removes the elements of lists in which nothing is shown: a server could make as many of them as a secret has
/// letters. If a place names an element by its number, only those after the last shown one are removed.
fn remove_gaps(value: &mut Value, is_numbered: bool) {
    match value {
        Value::Array(items) => {
            let length = items.iter().rposition(|item| !item.is_null()).map_or(0, |last| last + 1);
            items.truncate(length);
            items.retain(|item| is_numbered || !item.is_null());
            items.iter_mut().for_each(|item| remove_gaps(item, is_numbered));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| remove_gaps(field, is_numbered)),
        _ => {}
    }
}

fn is_index(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the document with the plain values at a pointer alone, or `None` if there are none.
fn pick(value: &Value, tokens: &[String], picked: Picked) -> Option<Value> {
    let Some((first, rest)) = tokens.split_first() else {
        return match (value, picked) {
            (Value::String(text), Picked::Shown) if text.len() > MAX_SHOWN => None,
            (Value::Null | Value::Array(_) | Value::Object(_), _) => None,
            (plain, _) => Some(plain.clone()),
        };
    };
    match value {
        Value::Object(fields) => {
            let found = pick(fields.get(first)?, rest, picked)?;
            Some(Value::Object(Map::from_iter([(first.clone(), found)])))
        }
        Value::Array(items) => {
            let any = first == ANY && matches!(picked, Picked::Shown);
            let fits = |index: usize| any || *first == index.to_string();
            let each = items.iter().enumerate();
            let picked: Vec<Value> = each
                .map(|(index, item)| fits(index).then(|| pick(item, rest, picked)).flatten().unwrap_or_default())
                .collect();
            picked.iter().any(|item| !item.is_null()).then_some(Value::Array(picked))
        }
        _ => None,
    }
}

/// Adds what another pointer picked from the same document.
fn merge(into: &mut Value, other: Value) {
    match (into, other) {
        (Value::Object(into), Value::Object(other)) => {
            for (name, field) in other {
                match into.get_mut(&name) {
                    Some(known) => merge(known, field),
                    None => drop(into.insert(name, field)),
                }
            }
        }
        (Value::Array(into), Value::Array(other)) => {
            into.iter_mut().zip(other).for_each(|(known, item)| merge(known, item));
        }
        (into @ Value::Null, other) => *into = other,
        _ => {}
    }
}

fn kept_xml(message: &Message<'_>, shown: &[&Place], captured: &[&Place]) -> Option<Vec<u8>> {
    let mut kept = String::new();
    for (place, picked) in places(shown, captured) {
        if let Place::Xml(name) = place
            && let Ok(Some(value)) = place.read(message)
            && (matches!(picked, Picked::Captured) || value.len() <= MAX_SHOWN)
            && !kept.contains(&format!("<{name}>"))
        {
            let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#13;");
            kept.push_str(&format!("<{name}>{escaped}</{name}>"));
        }
    }
    (!kept.is_empty()).then(|| format!("<shown>{kept}</shown>").into_bytes())
}
