//! Tables of resources of one kind in a simulated cloud, each owned by a project.

use serde_json::{Value, json};

/// A resource. `view` is what the API shows, `hidden` the internal data.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) project: String,
    pub(crate) view: Value,
    pub(crate) hidden: Value,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Vec<Item>);

impl Item {
    pub(crate) fn new(id: &str, project: &str, view: Value) -> Item {
        Item { id: id.to_owned(), project: project.to_owned(), view, hidden: json!({}) }
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.view[key].as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        self.view[key].as_u64().unwrap_or_default()
    }
}

impl Table {
    pub(crate) fn add(&mut self, item: Item) {
        self.0.push(item);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        self.0.iter_mut()
    }

    /// Returns the items of one project.
    pub(crate) fn of<'a>(&'a self, project: &'a str) -> impl Iterator<Item = &'a Item> {
        self.0.iter().filter(move |item| item.project == project)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Item> {
        self.0.iter().find(|item| item.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Item> {
        self.0.iter_mut().find(|item| item.id == id)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Item> {
        let at = self.0.iter().position(|item| item.id == id)?;
        Some(self.0.remove(at))
    }

    /// Sets a key of an item's view; ignores unknown ids.
    pub(crate) fn set(&mut self, id: &str, key: &str, value: Value) {
        if let Some(item) = self.get_mut(id) {
            item.view[key] = value;
        }
    }
}
