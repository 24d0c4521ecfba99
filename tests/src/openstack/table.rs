//! Queries of the tables of resources.

pub(super) use crate::simulation::{Item, Table};

use super::message::Request;
use serde_json::{Map, Value};

/// Returns true if the attributes of a view match the query. Attributes that the view
/// does not have are ignored; one that is queried twice may have either value.
pub(super) fn matches_query(request: &Request, view: &Value, not_filters: &[&str]) -> bool {
    let names = request.query.iter().map(|(name, _)| name.as_str()).filter(|name| !not_filters.contains(name));
    names.into_iter().filter(|name| view.get(name).is_some()).all(|name| {
        let mut wanted = request.query.iter().filter(|(known, _)| known == name).map(|(_, value)| value);
        wanted.any(|wanted| query_text(&view[name]).eq_ignore_ascii_case(wanted))
    })
}

/// Formats a value as in a query.
fn query_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns an object with only these keys.
pub(super) fn select_keys(view: &Value, keys: &[&str]) -> Value {
    let pairs = keys.iter().filter_map(|key| Some(((*key).to_owned(), view.get(key)?.clone())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// Returns the first key that is not in `known`.
pub(super) fn unknown_key<'a>(object: &'a Value, known: &[&str]) -> Option<&'a str> {
    let keys = object.as_object()?.keys();
    keys.map(String::as_str).find(|key| !known.contains(key))
}
