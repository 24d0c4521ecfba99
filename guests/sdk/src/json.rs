//! JSON documents that the CPI contract does not define further, above all
//! `cloud_properties`. Errors name the property: operators see
//! `cloud_properties.disk.size: invalid type: string "10", expected u64`.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

/// A JSON text, and its name for error messages.
///
/// ```
/// use serde::Deserialize;
/// use wasm_cpi_sdk::Json;
///
/// #[derive(Deserialize, Debug)]
/// struct VmProperties {
///     instance_type: String,
/// }
///
/// let document = Json::named("cloud_properties", r#"{"instance_type": 5}"#);
/// let error = document.parse::<VmProperties>().unwrap_err();
/// assert_eq!(
///     error.message,
///     "cloud_properties.instance_type: invalid type: integer `5`, expected a string"
/// );
/// ```
#[derive(Clone)]
pub struct Json {
    name: Cow<'static, str>,
    text: String,
}

impl Json {
    /// Creates a document with a name for error messages. The text is not checked
    /// before it is parsed.
    pub fn named(name: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// Creates a document without a name, for a text that goes to the host
    /// unchanged.
    pub fn raw(text: impl Into<String>) -> Self {
        Self::named("document", text)
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Parses the document. An empty text and `null` count as the empty object.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = match self.text.trim() {
            "" | "null" => "{}",
            text => text,
        };
        from_slice(text.as_bytes()).map_err(|problem| Error::cpi(problem.named(&self.name)))
    }

    /// Parses the document as any JSON value.
    pub fn value(&self) -> Result<Value, Error> {
        self.parse()
    }

    /// Returns the document with `key` set. Fails if it is not an object.
    pub fn with(self, key: &str, value: impl Serialize) -> Result<Self, Error> {
        let mut object: serde_json::Map<String, Value> = self.parse()?;
        let value = serde_json::to_value(value).map_err(|error| Error::cpi(format!("{}.{key}: {error}", self.name)))?;
        object.insert(key.to_owned(), value);
        Ok(Self { name: self.name, text: Value::Object(object).to_string() })
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::raw("{}")
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::raw(value.to_string())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The problem of a document, and its place in the document.
pub(crate) struct Problem {
    path: String,
    message: String,
}

impl Problem {
    /// Returns the problem as a sentence about the document `name`.
    pub(crate) fn named(&self, name: &str) -> String {
        match self.path.as_str() {
            "." => format!("{name}: {}", self.message),
            path if path.starts_with('[') => format!("{name}{path}: {}", self.message),
            path => format!("{name}.{path}: {}", self.message),
        }
    }
}

/// Parses a whole document. The error says which part of it does not fit `T`.
pub(crate) fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let parsed: T = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| Problem { path: error.path().to_string(), message: without_position(error.inner()) })?;
    reader.end().map_err(|error| Problem { path: ".".to_owned(), message: without_position(&error) })?;
    Ok(parsed)
}

/// Removes line and column: they do not help operators, who wrote YAML.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::ErrorKind;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Properties {
        instance_type: String,
        #[serde(default)]
        disks: Vec<Disk>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Disk {
        size: u64,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Optional {
        zone: Option<String>,
    }

    #[test]
    fn errors_name_the_property_and_what_was_expected() {
        for (text, message) in [
            (r#"{"instance_type":5}"#, "cloud_properties.instance_type: invalid type: integer `5`, expected a string"),
            (
                r#"{"instance_type":"a","disks":[{"size":1},{"size":"10"}]}"#,
                "cloud_properties.disks[1].size: invalid type: string \"10\", expected u64",
            ),
            (r#"{}"#, "cloud_properties: missing field `instance_type`"),
            (r#"null"#, "cloud_properties: missing field `instance_type`"),
            (r#"[]"#, "cloud_properties: invalid length 0, expected struct Properties with 2 elements"),
            (
                r#"{"instance_typ":"a"}"#,
                "cloud_properties.instance_typ: unknown field `instance_typ`, expected `instance_type` or `disks`",
            ),
            (r#"{"instance_type":"a"} x"#, "cloud_properties: trailing characters"),
            (r#"{"instance_type":"#, "cloud_properties.instance_type: EOF while parsing a value"),
        ] {
            let error = Json::named("cloud_properties", text).parse::<Properties>().unwrap_err();
            assert_eq!(error.message, message, "{text}");
            assert_eq!(error.kind, ErrorKind::Cpi);
        }
    }

    #[test]
    fn an_empty_text_and_null_count_as_the_empty_object() {
        for text in ["", " ", "null", " null ", "{}"] {
            assert_eq!(Json::raw(text).parse::<Optional>().unwrap(), Optional { zone: None }, "{text}");
        }
    }

    #[test]
    fn a_key_can_be_added_without_losing_the_others() {
        let document = Json::raw(r#"{"a":{"deep":[1,null]}}"#).with("b", 2).unwrap();
        assert_eq!(document.value().unwrap(), json!({"a": {"deep": [1, null]}, "b": 2}));
        assert!(Json::raw("[]").with("b", 2).is_err());
    }
}
