//! The CPI's properties: the job's, with the context's laid shallow over them.
//!
//! Every leaf knows its layer, because a secret goes only to origins of its own
//! layer. All of it counts as secret: `Debug` shows names alone, and what a
//! guest sees is made by `visible`, which seals every leaf that is not exposed.

use std::fmt;

use serde_json::{Map, Value};

use super::expose::Expose;
use super::needs::Needs;
use crate::holes::Check;
use crate::secret::Layer;

/// What the Director puts into the context besides properties.
pub const NOT_PROPERTIES: [&str; 3] = ["director_uuid", "request_id", "vm"];

#[derive(Clone, Default, PartialEq)]
pub struct Properties {
    values: Map<String, Value>,
    /// Names of the top-level properties that are the context's.
    from_context: Vec<String>,
}

impl Properties {
    /// A key of the context replaces the job's as a whole.
    pub fn merge(job: Map<String, Value>, context: Map<String, Value>) -> Properties {
        let mut merged = job;
        let mut from_context = Vec::new();
        for (name, value) in context {
            if !NOT_PROPERTIES.contains(&name.as_str()) {
                from_context.push(name.clone());
                merged.insert(name, value);
            }
        }
        Properties { values: merged, from_context }
    }

    /// The value at a dotted path like `auth.user`.
    pub fn get(&self, path: &str) -> Option<(&Value, Layer)> {
        let mut names = path.split('.');
        let top = names.next()?;
        let value = names.try_fold(self.values.get(top)?, |value, name| value.as_object()?.get(name))?;
        Some((value, self.layer(top)))
    }

    /// What the guest sees. `seal` gets the name, the value as text and the layer
    /// of a leaf and answers what stands in its place. Nulls stay: that nothing
    /// was set is no secret.
    pub fn visible(
        &self,
        expose: &Expose,
        needs: Option<&Needs>,
        mut seal: impl FnMut(&str, &str, Layer) -> String,
    ) -> Value {
        let view = self.values.iter().map(|(name, value)| {
            let layer = self.layer(name);
            let mut leaf = |label: &str, path: &str, value: &Value| {
                if value.is_null() || expose.shows(path, value, needs) || !Check::SealedProperties.on() {
                    value.clone()
                } else {
                    Value::String(seal(label, &leaf_text(value), layer))
                }
            };
            (name.clone(), map_leaves(name, name, value, &mut leaf))
        });
        Value::Object(view.collect())
    }

    fn layer(&self, top: &str) -> Layer {
        if self.from_context.iter().any(|name| name == top) { Layer::Context } else { Layer::Job }
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.keys()).finish()
    }
}

/// A string as it is, numbers and booleans as JSON writes them.
pub(super) fn leaf_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `label` counts the elements of lists (`zones.0`); `path`, which policies speak
/// of, does not.
fn map_leaves(label: &str, path: &str, value: &Value, leaf: &mut impl FnMut(&str, &str, &Value) -> Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| {
                    let (label, path) = (format!("{label}.{name}"), format!("{path}.{name}"));
                    (name.clone(), map_leaves(&label, &path, value, leaf))
                })
                .collect(),
        ),
        Value::Array(list) => Value::Array(
            list.iter()
                .enumerate()
                .map(|(index, value)| map_leaves(&format!("{label}.{index}"), path, value, leaf))
                .collect(),
        ),
        scalar => leaf(label, path, scalar),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn properties(job: Value, context: Value) -> Properties {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        Properties::merge(object(job), object(context))
    }

    fn sealed(properties: &Properties, expose: &Expose, needs: Option<&Needs>) -> Value {
        properties.visible(expose, needs, |name, value, layer| format!("<{name}={value}@{layer:?}>"))
    }

    #[test]
    fn the_context_lies_shallow_over_the_job() {
        let merged = properties(
            json!({"auth": {"user": "u", "password": "p"}, "region": "one"}),
            json!({"auth": {"user": "v"}, "vm": {"stemcell": {}}, "director_uuid": "d", "request_id": "r"}),
        );
        assert_eq!(merged.get("auth.user"), Some((&json!("v"), Layer::Context)));
        assert_eq!(merged.get("auth.password"), None);
        assert_eq!(merged.get("region"), Some((&json!("one"), Layer::Job)));
        for absent in ["vm", "vm.stemcell", "director_uuid", "request_id", "", ".", "auth.", "region.x", "auth.user.x"]
        {
            assert_eq!(merged.get(absent), None, "{absent:?}");
        }
    }

    #[test]
    fn every_leaf_is_sealed_unless_exposed() {
        let all = properties(
            json!({"a": {"b": "s", "n": 7, "t": true, "nothing": null}, "list": ["x", {"y": 1}], "empty": {}}),
            json!({"c": "z"}),
        );
        assert_eq!(
            sealed(&all, &Expose::default(), None),
            json!({
                "a": {"b": "<a.b=s@Job>", "n": "<a.n=7@Job>", "t": "<a.t=true@Job>", "nothing": null},
                "list": ["<list.0=x@Job>", {"y": "<list.1.y=1@Job>"}],
                "empty": {},
                "c": "<c=z@Context>",
            })
        );
        let expose = Expose::Listed(vec!["a.n".into(), "list".into()]);
        assert_eq!(
            sealed(&all, &expose, None),
            json!({
                "a": {"b": "<a.b=s@Job>", "n": 7, "t": "<a.t=true@Job>", "nothing": null},
                "list": ["x", {"y": 1}],
                "empty": {},
                "c": "<c=z@Context>",
            })
        );
    }

    #[test]
    fn declared_never_shows_credentials_but_the_operator_may() {
        let all = properties(
            json!({"url": "https://u:p@a.test", "plain": "https://a.test", "api_key": "k", "auth": {"Password": "p", "user": "u"},
                   "secrets": {"db": "d"}, "keys": ["k1"]}),
            json!({}),
        );
        let names = ["url", "plain", "api_key", "auth", "secrets", "keys"];
        let needs = Needs::parse(json!({"version": 1, "expose": names}).to_string().as_bytes()).unwrap();
        assert_eq!(
            sealed(&all, &Expose::Declared, Some(&needs)),
            json!({"url": "<url=https://u:p@a.test@Job>", "plain": "https://a.test", "api_key": "<api_key=k@Job>",
                   "auth": {"Password": "<auth.Password=p@Job>", "user": "u"}, "secrets": {"db": "<secrets.db=d@Job>"},
                   "keys": ["<keys.0=k1@Job>"]})
        );
        // Listed by itself, a value is meant; below a listed parent it may be an oversight.
        let listed = Expose::Listed(["url", "api_key", "auth", "secrets.db", "keys"].map(String::from).to_vec());
        assert_eq!(
            sealed(&all, &listed, None),
            json!({"url": "https://u:p@a.test", "plain": "<plain=https://a.test@Job>", "api_key": "k",
                   "auth": {"Password": "<auth.Password=p@Job>", "user": "u"}, "secrets": {"db": "d"}, "keys": ["k1"]})
        );
        let undeclared = sealed(&all, &Expose::Declared, None);
        assert_eq!(undeclared["plain"], json!("<plain=https://a.test@Job>"));
    }

    #[test]
    fn debug_shows_names_alone() {
        let shown = format!("{:?}", properties(json!({"password": "hunter2"}), json!({})));
        assert!(shown.contains("password") && !shown.contains("hunter2"), "{shown}");
    }
}
