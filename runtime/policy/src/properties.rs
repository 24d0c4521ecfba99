//! The CPI's properties: those of the job, overridden by those of the request's context.
//!
//! Each property knows its layer: a secret of the job is never sent to an origin that a cpi-config
//! chose; the other direction is allowed. All values count as secrets: `Debug` shows only names,
//! and `visible` replaces every value that is not exposed by a seal before a guest sees it.

use std::fmt;

use serde_json::{Map, Value};

use super::expose::Expose;
use super::needs::Needs;
use crate::secret::Layer;
use wasm_cpi_checks::Check;

/// The keys of the context that the Director sets and that are not properties.
pub const NOT_PROPERTIES: [&str; 3] = ["director_uuid", "request_id", "vm"];

/// The merged properties of one call, as a tree of JSON values.
#[derive(Clone, Default, PartialEq)]
pub struct Properties {
    values: Map<String, Value>,
    /// The names of the top-level properties that the context set.
    from_context: Vec<String>,
}

impl Properties {
    /// Merges the properties of the job's config with those of the request's context. A
    /// top-level key of the context replaces the job's as a whole, objects included.
    ///
    /// ```
    /// use serde_json::{Map, json};
    /// use wasm_cpi_policy::Properties;
    /// use wasm_cpi_policy::secret::Layer;
    ///
    /// let job = Map::from_iter([("region".to_owned(), json!("one")), ("zone".to_owned(), json!("a"))]);
    /// let context = Map::from_iter([("region".to_owned(), json!("two"))]);
    /// let properties = Properties::merge(job, context);
    /// assert_eq!(properties.get("region"), Some((&json!("two"), Layer::Context)));
    /// assert_eq!(properties.get("zone"), Some((&json!("a"), Layer::Job)));
    /// ```
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

    /// Returns the value at a dotted path like `auth.user`, and the layer that set it.
    pub fn get(&self, path: &str) -> Option<(&Value, Layer)> {
        let mut names = path.split('.');
        let top = names.next()?;
        let value = names.try_fold(self.values.get(top)?, |value, name| value.as_object()?.get(name))?;
        Some((value, self.layer(top)))
    }

    /// Returns the properties as the guest sees them. For each leaf that is not exposed, `seal`
    /// receives its name, its value as text and its layer, and returns the text that replaces
    /// it. Nulls stay as they are, since they reveal no value.
    pub fn visible(
        &self,
        expose: &Expose,
        needs: Option<&Needs>,
        mut seal: impl FnMut(&str, &str, Layer) -> String,
    ) -> Value {
        let view = self.values.iter().map(|(name, value)| {
            let layer = self.layer(name);
            let mut leaf = |label: &str, path: &str, value: &Value| {
                if value.is_null() || Check::SealedProperties.accepts(expose.shows(path, value, needs)) {
                    value.clone()
                } else {
                    Value::String(seal(label, &leaf_text(value), layer))
                }
            };
            (name.clone(), map_leaves(name, name, value, &mut leaf))
        });
        Value::Object(view.collect())
    }

    /// Calls `see` with the path and the value of each leaf.
    pub(super) fn for_each_leaf(&self, mut see: impl FnMut(&str, &Value)) {
        for (name, value) in &self.values {
            map_leaves(name, name, value, &mut |_: &str, path: &str, value: &Value| {
                see(path, value);
                Value::Null
            });
        }
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

/// Returns a string as it is, and numbers and booleans as JSON writes them.
pub(super) fn leaf_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Replaces each leaf by what `leaf` returns. The label of a leaf has the indices of lists
/// (`zones.0`); its path, which policies name, does not.
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
    fn a_top_level_key_of_the_context_replaces_that_of_the_job() {
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
    fn declared_credentials_stay_sealed_unless_the_operator_lists_them() {
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
    fn debug_shows_only_names() {
        let shown = format!("{:?}", properties(json!({"password": "hunter2"}), json!({})));
        assert!(shown.contains("password") && !shown.contains("hunter2"), "{shown}");
    }
}
