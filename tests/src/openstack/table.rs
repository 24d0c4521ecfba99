//! Things of one kind, each with its project.

use super::message::Request;
use serde_json::{Map, Value, json};

/// `view` is what the API shows; `hidden` what only the cloud knows.
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

    /// Those of one project.
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

    pub(super) fn set(&mut self, id: &str, key: &str, value: Value) {
        if let Some(item) = self.get_mut(id) {
            item.view[key] = value;
        }
    }
}

/// Whether all queried attributes that a thing has are as queried; one asked
/// for twice may be either.
pub(super) fn matches(request: &Request, view: &Value, not_filters: &[&str]) -> bool {
    let names = request.query.iter().map(|(name, _)| name.as_str()).filter(|name| !not_filters.contains(name));
    names.into_iter().filter(|name| view.get(name).is_some()).all(|name| {
        let mut wanted = request.query.iter().filter(|(known, _)| known == name).map(|(_, value)| value);
        wanted.any(|wanted| shown(&view[name]).eq_ignore_ascii_case(wanted))
    })
}

/// A value as a query would write it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// These keys of an object alone.
pub(super) fn only(view: &Value, keys: &[&str]) -> Value {
    let pairs = keys.iter().filter_map(|key| Some(((*key).to_owned(), view.get(key)?.clone())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// The first key that is not among these.
pub(super) fn stranger<'a>(object: &'a Value, known: &[&str]) -> Option<&'a str> {
    let keys = object.as_object()?.keys();
    keys.map(String::as_str).find(|key| !known.contains(key))
}
