//! Texts with `${property}` in them, and their values in one call. `${one|other}` takes the
//! first property that is set.
//!
//! A resolved text knows the layers of its properties, so that a secret of the job cannot be
//! sent to an origin that a cpi-config chose. The literal parts are treated as secret, too.

use serde_json::Value;

use super::object_reader::kind;
use super::problem::{PolicyProblem, Problems};
use super::properties::{Properties, leaf_text};
use crate::secret::{Layer, Secret};
use wasm_cpi_checks::Check;

/// A text with any number of `${property}` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Secret),
    /// The dotted paths of properties, of which the first that is set is used.
    Property(Vec<String>),
}

/// The value of a template in one call. The host sends it, and the guest never sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedText {
    /// The names of the properties in it, for logs: `user` or `user+password`. It is empty for a
    /// template without properties.
    pub name: String,
    /// True if the template has literal text, so that another template with the same properties may
    /// have another value.
    pub has_literal: bool,
    /// The value.
    pub secret: Secret,
    /// The layer of the value: `Job` unless every property in it is from the context.
    pub layer: Layer,
}

/// The reason why a text is not a template. The messages follow the key of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `${` has no `}`.
    #[error("has a `${{` without its `}}`")]
    Unclosed,
    /// The text within `${…}` is not the dotted path of a property.
    #[error("has a `${{…}}` that is not the name of a property")]
    PropertyName,
}

impl Template {
    /// Parses a text. Rejects a `${` without its `}`, and names that no property can have.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
            let names: Vec<String> = name.split('|').map(str::to_owned).collect();
            if !names.iter().all(|name| is_property_path(name)) {
                return Err(TemplateError::PropertyName);
            }
            if !before.is_empty() {
                parts.push(Part::Text(Secret::new(before)));
            }
            parts.push(Part::Property(names));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(Secret::new(rest)));
        }
        Ok(Template(parts))
    }

    /// Returns the names of all properties that the template can take.
    pub(super) fn property_names(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flat_map(|part| match part {
            Part::Property(names) => names.as_slice(),
            Part::Text(_) => &[],
        })
    }

    pub(super) fn has_property(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Property(_)))
    }

    /// Returns the name of the property if the template is exactly one `${property}`.
    pub(super) fn whole_property(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Property(names)] => match names.as_slice() {
                [name] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns true if the template consists of properties, none of which is set. Where a value is optional, such a
    /// template stands for none.
    pub(super) fn is_unset(&self, properties: &Properties) -> bool {
        let unset = |name: &String| !is_set(properties, name);
        self.0.iter().all(|part| matches!(part, Part::Property(names) if names.iter().all(unset)))
    }

    /// Fills in the properties for an origin that comes from the layer `to`. A property that is
    /// not set or that may not be sent there is a problem at the key `at`.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        to: Layer,
        at: &str,
        problems: &Problems,
    ) -> Option<ResolvedText> {
        let mut text = String::new();
        let mut names = Vec::new();
        let mut layers = Vec::new();
        let mut complete = true;
        for part in &self.0 {
            match part {
                Part::Text(literal) => text.push_str(literal.reveal()),
                Part::Property(choice) => match chosen(properties, choice, at, problems) {
                    Some((name, value, layer)) => {
                        complete &= check_layer(name, layer, to, at, problems);
                        text.push_str(&leaf_text(value));
                        names.push(name);
                        layers.push(layer);
                    }
                    None => complete = false,
                },
            }
        }
        let layer = if layers.iter().all(|layer| *layer == Layer::Context) && !layers.is_empty() {
            Layer::Context
        } else {
            Layer::Job
        };
        let has_literal = self.0.iter().any(|part| matches!(part, Part::Text(_)));
        complete.then(|| ResolvedText { name: names.join("+"), has_literal, secret: Secret::new(text), layer })
    }
}

/// Returns the first of these properties that is set.
fn chosen<'p>(
    properties: &'p Properties,
    choice: &'p [String],
    at: &str,
    problems: &Problems,
) -> Option<(&'p str, &'p Value, Layer)> {
    let name = choice.iter().find(|name| is_set(properties, name)).or(choice.last())?;
    let (value, layer) = scalar(properties, name, at, problems)?;
    Some((name, value, layer))
}

/// Returns true if the property has a value that is neither null nor empty.
fn is_set(properties: &Properties, name: &str) -> bool {
    properties.get(name).is_some_and(|(value, _)| !value.is_null() && *value != "")
}

/// Returns a property that holds a string, number or boolean; any other one is a problem.
pub(super) fn scalar<'p>(
    properties: &'p Properties,
    name: &str,
    at: &str,
    problems: &Problems,
) -> Option<(&'p Value, Layer)> {
    match properties.get(name) {
        Some((Value::String(_) | Value::Number(_) | Value::Bool(_), _)) => properties.get(name),
        Some((other, _)) => {
            let what = format!("takes the property `{name}`, which is {}", kind(other));
            problems.add(at, what, "name a property that holds a string, number or boolean");
            None
        }
        None => {
            let what = format!("takes the property `{name}`, which is not set");
            problems.add(at, what, "set it in the job's `properties` or in the cpi-config");
            None
        }
    }
}

/// Applies the layer rule: an origin that the context chose does not get properties of the job. Reports a problem at
/// the key `at` if the property must not be sent, and returns true if it may be.
pub(super) fn check_layer(name: &str, secret_layer: Layer, origin_layer: Layer, at: &str, problems: &Problems) -> bool {
    problems.ensure(Check::LayerProperty, secret_layer.may_be_sent_to(origin_layer), || {
        let what = format!("would send the job's property `{name}` to an origin that the context (a cpi-config) chose");
        PolicyProblem::new(
            at,
            what,
            format!("set `{name}` in the cpi-config too, or the origin in the job's properties"),
        )
    })
}

/// Returns true for a dotted path like `name` or `group.name`.
pub(super) fn is_property_path(text: &str) -> bool {
    let name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    text.len() <= 255 && text.split('.').all(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn properties() -> Properties {
        let job = json!({"user": "u", "port": 5, "group": {"x": "y"}, "list": [], "null": null, "empty": ""});
        let context = json!({"token": "t"});
        Properties::merge(job.as_object().cloned().unwrap(), context.as_object().cloned().unwrap())
    }

    #[test]
    fn templates_are_filled_and_hold_their_layer() {
        for (text, filled, name, layer) in [
            ("", "", "", Layer::Job),
            ("plain $ {x} }", "plain $ {x} }", "", Layer::Job),
            ("${user}", "u", "user", Layer::Job),
            ("Bearer ${token}", "Bearer t", "token", Layer::Context),
            ("${user}:${token}", "u:t", "user+token", Layer::Job),
            ("a${port}b${group.x}", "a5by", "port+group.x", Layer::Job),
            ("${nothing|user}", "u", "user", Layer::Job),
            ("${user|token}", "u", "user", Layer::Job),
            ("${null|token}", "t", "token", Layer::Context),
            ("${empty|token}", "t", "token", Layer::Context),
        ] {
            let problems = Problems::default();
            let found = Template::parse(text).unwrap().resolve(&properties(), Layer::Job, "k", &problems).unwrap();
            assert_eq!((found.secret.reveal(), found.name.as_str(), found.layer), (filled, name, layer), "{text}");
        }
    }

    #[test]
    fn a_template_is_unset_if_it_is_nothing_but_properties_without_values() {
        for (text, unset) in [
            ("${nothing}", true),
            ("${null}", true),
            ("${empty}", true),
            ("${nothing|empty}", true),
            ("${nothing|user}", false),
            ("${user}", false),
            ("${list}", false),
            ("x${nothing}", false),
            ("x", false),
        ] {
            assert_eq!(Template::parse(text).unwrap().is_unset(&properties()), unset, "{text}");
        }
    }

    #[test]
    fn broken_templates_are_refused() {
        for text in [
            "${", "${}", "${a", "a${b.}", "${ a }", "${a}${", "${a/b}", "${${a}}", "${a|}", "${|a}", "${a||b}",
            "${a | b}",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_filled_is_a_problem() {
        for (text, to, what) in [
            ("${nothing}", Layer::Job, "`nothing`, which is not set"),
            ("${nothing|neither}", Layer::Job, "`neither`, which is not set"),
            ("${group}", Layer::Job, "which is an object"),
            ("${list}", Layer::Job, "which is a list"),
            ("${user}", Layer::Context, "the job's property `user`"),
            ("${token}${user}", Layer::Context, "the job's property `user`"),
        ] {
            let problems = Problems::default();
            assert!(Template::parse(text).unwrap().resolve(&properties(), to, "k", &problems).is_none(), "{text}");
            let problems = problems.into_vec();
            assert_eq!(problems.len(), 1, "{text}");
            assert!(problems[0].what.contains(what), "{text}: {}", problems[0]);
        }
        let problems = Problems::default();
        assert!(
            Template::parse("Bearer ${token}")
                .unwrap()
                .resolve(&properties(), Layer::Context, "k", &problems)
                .is_some()
        );
    }

    #[test]
    fn debug_shows_no_text() {
        let template = Template::parse("hunter2${user}").unwrap();
        assert!(!format!("{template:?}").contains("hunter2"));
    }
}
