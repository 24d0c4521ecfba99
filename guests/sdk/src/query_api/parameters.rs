//! Writes the parameters of an operation as the fields of a form.

use std::collections::BTreeSet;

use serde_json::Value;

/// The fields of a form. Lists are in their own order, and the keys of objects in the order of their names.
pub(super) struct Fields {
    list: Vec<(String, String)>,
    has_member_lists: bool,
}

impl Fields {
    pub(super) fn new(has_member_lists: bool) -> Self {
        Self { list: vec![], has_member_lists }
    }

    /// Adds a parameter, or returns why an API could misread it.
    pub(super) fn add(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match value {
            Value::Null => {}
            Value::String(text) => self.list.push((name.to_owned(), text.clone())),
            Value::Bool(value) => self.list.push((name.to_owned(), value.to_string())),
            Value::Number(number) if number.is_f64() => return Err(format!("parameter `{name}` is not an integer")),
            Value::Number(number) => self.list.push((name.to_owned(), number.to_string())),
            Value::Array(values) if values.contains(&Value::Null) => {
                return Err(format!("the list `{name}` has an element that is null"));
            }
            Value::Array(values) => {
                let list = if self.has_member_lists { format!("{name}.member") } else { name.to_owned() };
                self.add_parts(
                    name,
                    values.iter().enumerate().map(|(at, value)| (format!("{list}.{}", at + 1), value)),
                )?;
            }
            Value::Object(object) => {
                self.add_parts(name, object.iter().map(|(key, value)| (format!("{name}.{key}"), value)))?;
            }
        }
        Ok(())
    }

    /// Returns the fields, or the problem of their names.
    pub(super) fn finish(self) -> Result<Vec<(String, String)>, String> {
        // Servers differ in whether they tell apart the case of names.
        let mut seen = BTreeSet::new();
        for (name, _) in &self.list {
            if !is_name(name) {
                return Err(format!("`{}` is not a valid name of a parameter", name.escape_default()));
            }
            if !seen.insert(name.to_ascii_lowercase()) {
                return Err(format!("parameter `{name}` is set twice"));
            }
        }
        Ok(self.list)
    }

    /// Adds the parts of a list or an object. Refuses one that sends nothing.
    fn add_parts<'a>(&mut self, name: &str, parts: impl Iterator<Item = (String, &'a Value)>) -> Result<(), String> {
        let before = self.list.len();
        for (name, value) in parts {
            self.add(&name, value)?;
        }
        if self.list.len() == before {
            return Err(format!("parameter `{name}` has no values; pass null to leave it out"));
        }
        Ok(())
    }
}

/// Returns true if a name is one or more words, and numbers of list elements, with dots between them. The
/// host refuses other names where it judges them.
fn is_name(name: &str) -> bool {
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_number = |part: &str| !part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.split('.').all(|part| !part.is_empty() && (is_word(part) || is_number(part)))
}
