//! Describes where in a request a seal is, for messages to the guest's author. No
//! decision depends on it.

use serde_json::Value;

use wasm_cpi_policy::place::{Place, parse_form, parse_json};

/// The place of a seal.
pub(super) struct SealLocation {
    /// The quoted place, or a description.
    pub(super) place: String,
    /// True if the seal is the complete value at the place.
    pub(super) complete: bool,
}

/// The maximum length of a place in a message.
const MAX_PLACE: usize = 200;

/// Returns where the seal is in a request that holds it.
pub(super) fn locate(seal: &str, headers: &[(String, String)], body: &[u8]) -> SealLocation {
    let (place, complete) = in_headers(seal, headers)
        .or_else(|| in_json(seal, &mut Vec::new(), &parse_json(body).ok()?))
        .or_else(|| in_form(seal, body))
        .unwrap_or_else(|| ("the body".to_owned(), true));
    SealLocation { place: place.chars().take(MAX_PLACE).collect(), complete }
}

fn in_headers(seal: &str, headers: &[(String, String)]) -> Option<(String, bool)> {
    headers.iter().find_map(|(name, value)| match (name.contains(seal), value.contains(seal)) {
        (true, _) => Some(("the name of a header".to_owned(), true)),
        (_, true) => Some((quoted(&Place::Header(name.to_ascii_lowercase())), value == seal)),
        _ => None,
    })
}

fn in_json(seal: &str, path: &mut Vec<String>, value: &Value) -> Option<(String, bool)> {
    let mut below = |key: String, value: &Value| {
        path.push(key);
        let found = in_json(seal, path, value);
        path.pop();
        found
    };
    match value {
        Value::String(text) if text.contains(seal) => Some((quoted(&Place::Json(path.clone())), text == seal)),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| below(index.to_string(), item)),
        Value::Object(fields) => fields.iter().find_map(|(key, field)| match key.contains(seal) {
            true => Some(("a key of the JSON body".to_owned(), true)),
            false => below(key.clone(), field),
        }),
        _ => None,
    }
}

fn in_form(seal: &str, body: &[u8]) -> Option<(String, bool)> {
    let fields = parse_form(body).ok()?;
    let (name, value) = fields.into_iter().find(|(_, value)| value.contains(seal))?;
    Some((quoted(&Place::Form(name)), value == seal))
}

pub(super) fn quoted(place: &Place) -> String {
    format!("`{place}`")
}
