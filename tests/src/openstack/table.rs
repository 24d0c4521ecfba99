//! Tables of resources of one kind, each owned by a project.

use super::message::Request;
use serde_json::{Map, Value, json};

/// A resource. `view` is what the API shows, `hidden` the internal data.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) project: String,
    pub(super) view: Value,
    pub(super) hidden: Value,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table(Vec<Item>);

impl Item {
    pub(super) fn new(id: &str, project: &str, view: Value) -> Item {
        Item { id: id.to_owned(), project: project.to_owned(), view, hidden: json!({}) }
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.view[key].as_str().unwrap_or_default()
    }

    pub(super) fn number(&self, key: &str) -> u64 {
        self.view[key].as_u64().unwrap_or_default()
    }
}

impl Table {
    pub(super) fn add(&mut self, item: Item) {
        self.0.push(item);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        self.0.iter_mut()
    }

    /// Returns the items of one project.
    pub(super) fn of<'a>(&'a self, project: &'a str) -> impl Iterator<Item = &'a Item> {
        self.0.iter().filter(move |item| item.project == project)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Item> {
        self.0.iter().find(|item| item.id == id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Item> {
        self.0.iter_mut().find(|item| item.id == id)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Item> {
        let at = self.0.iter().position(|item| item.id == id)?;
        Some(self.0.remove(at))
    }

    /// Sets a key of an item's view; ignores unknown ids.
    pub(super) fn set(&mut self, id: &str, key: &str, value: Value) {
        if let Some(item) = self.get_mut(id) {
            item.view[key] = value;
        }
    }
}

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
