//! Finds where in a request a seal is, for messages to the guest's author and hints to the
//! operator. Whether the request is sent does not depend on it.

use serde_json::Value;

use wasm_cpi_policy::place::{Place, parse_form, parse_json};

/// The place of a seal.
pub(super) struct SealLocation {
    /// The place, if a policy can name it.
    pub(super) place: Option<Place>,
    /// The quoted place, or a description.
    pub(super) text: String,
    /// True if the seal is the complete value at the place.
    pub(super) complete: bool,
}

/// The maximum length of a place in a message.
const MAX_PLACE: usize = 200;

/// A place or a description, and whether the seal is the complete value there.
type Found = (Result<Place, &'static str>, bool);

/// Returns where the seal is in a request that holds it.
pub(super) fn locate(seal: &str, headers: &[(String, String)], body: &[u8]) -> SealLocation {
    let (found, complete) = in_headers(seal, headers)
        .or_else(|| in_json(seal, &mut Vec::new(), &parse_json(body).ok()?))
        .or_else(|| in_form(seal, body))
        .unwrap_or((Err("the body"), true));
    let text = found.as_ref().map_or_else(|what| (*what).to_owned(), |place| format!("`{place}`"));
    let short: String = text.chars().take(MAX_PLACE).collect();
    // The guest chooses names that a policy cannot hold, and hints must not repeat them.
    let nameable =
        |place: &Place| short == text && place.to_string().parse().is_ok_and(|parsed: Place| parsed == *place);
    SealLocation { place: found.ok().filter(nameable), text: short, complete }
}

fn in_headers(seal: &str, headers: &[(String, String)]) -> Option<Found> {
    headers.iter().find_map(|(name, value)| match (name.contains(seal), value.contains(seal)) {
        (true, _) => Some((Err("the name of a header"), true)),
        (_, true) => Some((Ok(Place::Header(name.to_ascii_lowercase())), value == seal)),
        _ => None,
    })
}

fn in_json(seal: &str, path: &mut Vec<String>, value: &Value) -> Option<Found> {
    let mut below = |key: String, value: &Value| {
        path.push(key);
        let found = in_json(seal, path, value);
        path.pop();
        found
    };
    match value {
        Value::String(text) if text.contains(seal) => Some((Ok(Place::Json(path.clone())), text == seal)),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| below(index.to_string(), item)),
        Value::Object(fields) => fields.iter().find_map(|(key, field)| match key.contains(seal) {
            true => Some((Err("a key of the JSON body"), true)),
            false => below(key.clone(), field),
        }),
        _ => None,
    }
}

fn in_form(seal: &str, body: &[u8]) -> Option<Found> {
    let fields = parse_form(body).ok()?;
    let (name, value) = fields.into_iter().find(|(_, value)| value.contains(seal))?;
    Some((Ok(Place::Form(name)), value == seal))
}
