//! Tags: BOSH's metadata in the form that EC2 accepts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::Metadata;

/// The longest key and the longest value in characters. EC2 has one more of each, and bosh-aws-cpi does not use it.
const MAX_KEY: usize = 127;
const MAX_VALUE: usize = 255;

/// The beginning of keys that only AWS itself may use.
const RESERVED: &str = "aws:";

/// Tags by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tags(BTreeMap<String, String>);

impl Tags {
    /// Returns the tags for metadata. Keys and values are truncated; what EC2 does not accept is left out.
    pub(crate) fn of_metadata(metadata: &Metadata) -> Self {
        let mut tags = Self::default();
        metadata.iter().for_each(|(key, value)| tags.insert(key, value));
        tags
    }

    /// Adds tags of cloud properties or of `env`, whose values may be numbers and booleans. They replace others.
    pub(crate) fn extend(&mut self, tags: &Map<String, Value>) {
        for (key, value) in tags.iter().filter(|(_, value)| !value.is_null()) {
            match value {
                Value::String(text) => self.insert(key, text),
                other => self.insert(key, &other.to_string()),
            }
        }
    }

    pub(crate) fn insert(&mut self, key: &str, value: &str) {
        if !key.is_empty() && !key.to_lowercase().starts_with(RESERVED) {
            self.0.insert(truncate(key, MAX_KEY), truncate(value, MAX_VALUE));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns the list `Tag` of a request, or null if there are no tags.
    pub(crate) fn list(&self) -> Value {
        let tags: Vec<Value> = self.0.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
        if tags.is_empty() { Value::Null } else { json!(tags) }
    }

    /// Returns the list `TagSpecification` for new resources of these types, or null if there are no tags.
    pub(crate) fn specification(&self, types: &[&str]) -> Value {
        if self.is_empty() || types.is_empty() {
            return Value::Null;
        }
        types.iter().map(|name| json!({"ResourceType": name, "Tag": self.list()})).collect()
    }
}

impl FromIterator<(String, String)> for Tags {
    /// Collects tags as EC2 returns them, without changes.
    fn from_iter<I: IntoIterator<Item = (String, String)>>(tags: I) -> Self {
        Self(tags.into_iter().collect())
    }
}

fn truncate(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_and_values_are_truncated_and_invalid_keys_are_left_out() {
        let long = "ä".repeat(300);
        let pairs = [(long.as_str(), long.as_str()), ("", "x"), ("aws:x", "x"), ("AWS:y", "x"), ("job", "")];
        let metadata: Metadata = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let tags = Tags::of_metadata(&metadata);
        let expected = [("job".to_owned(), String::new()), ("ä".repeat(127), "ä".repeat(255))];
        assert_eq!(tags, expected.into_iter().collect());
    }

    #[test]
    fn later_tags_replace_earlier_ones_and_numbers_become_texts() {
        let mut tags = Tags::of_metadata(&vec![("a".to_owned(), "1".to_owned())]);
        tags.extend(json!({"a": 2, "b": true, "c": null}).as_object().unwrap());
        assert_eq!(tags.list(), json!([{"Key": "a", "Value": "2"}, {"Key": "b", "Value": "true"}]));
        assert_eq!(tags.specification(&["volume"])[0]["ResourceType"], "volume");
        assert_eq!(Tags::default().specification(&["volume"]), Value::Null);
    }
}
