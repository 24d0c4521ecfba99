//! BOSH's metadata as OpenStack takes it: keys and values of at most 255
//! characters, none without a key.

use std::collections::BTreeMap;

use wasm_cpi_sdk::Metadata;

const MAX_CHARS: usize = 255;

pub(crate) fn tags(metadata: &Metadata) -> BTreeMap<String, String> {
    let pairs = metadata.iter().filter(|(key, value)| !key.is_empty() && value != "null");
    pairs.map(|(key, value)| (cut(key), cut(value))).collect()
}

pub(crate) fn cut(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_and_values_are_cut_and_empty_ones_left_out() {
        let long = "ä".repeat(300);
        let metadata = vec![(long.clone(), long.clone()), ("job".into(), "a".into()), ("x".into(), "null".into())];
        let tags = tags(&[metadata, vec![(String::new(), "v".into())]].concat());
        assert_eq!(tags.len(), 2);
        assert_eq!(tags["job"], "a");
        assert_eq!(tags[&"ä".repeat(255)], "ä".repeat(255));
    }
}
