//! The body of a login: JSON or a form, with `${property}` in its strings.
//!
//! Values are put into parsed JSON that is then serialised; they are never spliced into
//! text. The result holds credentials and is a [`Secret`].

use serde_json::{Map, Value};

use super::object_reader::{ObjectReader, kind};
use super::problem::Problems;
use super::properties::Properties;
use super::template::{ResolvedText, Template, check_layer, scalar};
use crate::secret::{Layer, Secret};

/// The body of the request that logs in, with all properties filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginBody {
    /// The request has no body.
    None,
    /// The text of a JSON document.
    Json(Secret),
    /// The names and values of an urlencoded form, in order and not encoded yet.
    Form(Vec<(String, ResolvedText)>),
}

#[derive(Clone, Debug)]
pub(super) enum BodySpec {
    None,
    Json(JsonTemplate),
    Form(Vec<(String, Template)>),
}

#[derive(Clone, Debug)]
pub(super) enum JsonTemplate {
    Text(Template),
    List(Vec<JsonTemplate>),
    Object(Vec<(String, JsonTemplate)>),
    /// A null, a boolean or a number, which is sent as it is written.
    Plain(Value),
}

impl BodySpec {
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> BodySpec {
        let form = templates(reader, "form");
        match (reader.value("body"), reader.value("form")) {
            (None, None) => BodySpec::None,
            (None, Some(_)) => BodySpec::Form(form),
            (Some(body), None) => BodySpec::Json(JsonTemplate::read(body, &reader.at("body"), reader.problems())),
            (Some(_), Some(_)) => {
                reader.problem("form", "is used together with `body`", "keep one of them");
                BodySpec::None
            }
        }
    }

    /// Returns the names of the properties in the body, in its order.
    pub(super) fn property_names(&self) -> Vec<&String> {
        match self {
            BodySpec::None => Vec::new(),
            BodySpec::Json(template) => template.property_names(),
            BodySpec::Form(form) => form.iter().flat_map(|(_, template)| template.property_names()).collect(),
        }
    }

    /// Fills in the properties for an origin that comes from the layer `to`. Also returns
    /// the layer of each property that was used.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        to: Layer,
        at: &str,
        problems: &Problems,
    ) -> Option<(LoginBody, Vec<Layer>)> {
        let mut layers = Vec::new();
        let body = match self {
            BodySpec::None => LoginBody::None,
            BodySpec::Json(template) => {
                let fill = Fill { properties, to, problems };
                let json = template.resolve(&fill, &format!("{at}.body"), &mut layers)?;
                LoginBody::Json(Secret::new(json.to_string()))
            }
            BodySpec::Form(form) => {
                let form = resolve_all(form, properties, to, &format!("{at}.form"), problems);
                layers.extend(form.iter().filter(|(_, value)| !value.name.is_empty()).map(|(_, value)| value.layer));
                LoginBody::Form(form)
            }
        };
        Some((body, layers))
    }
}

struct Fill<'a> {
    properties: &'a Properties,
    to: Layer,
    problems: &'a Problems,
}

impl JsonTemplate {
    fn read(value: &Value, at: &str, problems: &Problems) -> JsonTemplate {
        match value {
            Value::String(text) => match Template::parse(text) {
                Ok(template) => JsonTemplate::Text(template),
                Err(what) => {
                    problems.add(at, what.to_string(), "write it like `${property}`");
                    JsonTemplate::Plain(Value::Null)
                }
            },
            Value::Array(list) => {
                let read = |(i, value)| JsonTemplate::read(value, &format!("{at}[{i}]"), problems);
                JsonTemplate::List(list.iter().enumerate().map(read).collect())
            }
            Value::Object(map) => {
                let read = |(name, value): (&String, _)| {
                    (name.clone(), JsonTemplate::read(value, &format!("{at}.{name}"), problems))
                };
                JsonTemplate::Object(map.iter().map(read).collect())
            }
            plain => JsonTemplate::Plain(plain.clone()),
        }
    }

    fn property_names(&self) -> Vec<&String> {
        match self {
            JsonTemplate::Text(template) => template.property_names().collect(),
            JsonTemplate::List(list) => list.iter().flat_map(JsonTemplate::property_names).collect(),
            JsonTemplate::Object(members) => members.iter().flat_map(|(_, item)| item.property_names()).collect(),
            JsonTemplate::Plain(_) => Vec::new(),
        }
    }

    fn resolve(&self, fill: &Fill<'_>, at: &str, layers: &mut Vec<Layer>) -> Option<Value> {
        Some(match self {
            // A string that is nothing but a property keeps the property's type.
            JsonTemplate::Text(template) => match template.whole_property() {
                Some(name) => {
                    let (value, layer) = scalar(fill.properties, name, at, fill.problems)?;
                    check_layer(name, layer, fill.to, at, fill.problems);
                    layers.push(layer);
                    value.clone()
                }
                None => {
                    let text = template.resolve(fill.properties, fill.to, at, fill.problems)?;
                    layers.extend(template.has_property().then_some(text.layer));
                    Value::String(text.secret.reveal().to_owned())
                }
            },
            JsonTemplate::List(list) => {
                let each = list.iter().enumerate().map(|(i, item)| item.resolve(fill, &format!("{at}[{i}]"), layers));
                Value::Array(each.collect::<Vec<_>>().into_iter().collect::<Option<_>>()?)
            }
            JsonTemplate::Object(members) => {
                let each = members
                    .iter()
                    .map(|(name, item)| Some((name.clone(), item.resolve(fill, &format!("{at}.{name}"), layers)?)));
                Value::Object(each.collect::<Vec<_>>().into_iter().collect::<Option<Map<_, _>>>()?)
            }
            JsonTemplate::Plain(plain) => plain.clone(),
        })
    }
}

/// Returns the members of the object at `key`, whose values are templates.
pub(super) fn templates(reader: &mut ObjectReader<'_>, key: &'static str) -> Vec<(String, Template)> {
    let mut found = Vec::new();
    for (at, name, value) in reader.members(key) {
        match value.as_str().map(Template::parse) {
            Some(Ok(template)) => found.push((name.clone(), template)),
            Some(Err(what)) => reader.problems().add(at, what.to_string(), "write it like `${property}`"),
            None => reader.problems().add(at, format!("is {}", kind(value)), "write a string"),
        }
    }
    found
}

/// Fills in all templates; those that cannot be filled in are problems and left out.
pub(super) fn resolve_all(
    templates: &[(String, Template)],
    properties: &Properties,
    to: Layer,
    at: &str,
    problems: &Problems,
) -> Vec<(String, ResolvedText)> {
    let fill = |(name, template): &(String, Template)| {
        Some((name.clone(), template.resolve(properties, to, &format!("{at}.{name}"), problems)?))
    };
    templates.iter().filter_map(fill).collect()
}
