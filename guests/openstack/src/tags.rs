//! BOSH's metadata in the form that OpenStack accepts: keys and values have at most
//! 255 characters, and no key is empty.

use std::collections::BTreeMap;

use wasm_cpi_sdk::Metadata;

const MAX_CHARS: usize = 255;

pub(crate) fn tags(metadata: &Metadata) -> BTreeMap<String, String> {
    let pairs = metadata.iter().filter(|(key, value)| !key.is_empty() && value != "null");
    pairs.map(|(key, value)| (truncate(key), truncate(value))).collect()
}

pub(crate) fn truncate(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_and_values_are_truncated_and_empty_ones_removed() {
        let long = "ä".repeat(300);
        let metadata = vec![(long.clone(), long.clone()), ("job".into(), "a".into()), ("x".into(), "null".into())];
        let tags = tags(&[metadata, vec![(String::new(), "v".into())]].concat());
        assert_eq!(tags.len(), 2);
        assert_eq!(tags["job"], "a");
        assert_eq!(tags[&"ä".repeat(255)], "ä".repeat(255));
    }
}
