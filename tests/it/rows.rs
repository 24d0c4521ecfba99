//! The language of the rows of the attack corpus (`tests::rows`).

use serde_json::{Value, json};
use tests::rows::{expand_repeats, fill_placeholders, merge_patch, parse_json_values, texts};

#[test]
fn repetitions_are_expanded() {
    for (row, expected) in [
        (json!("a[[3*bc]]d"), json!("abcbcbcd")),
        (json!("[[2*x]]-[[0*y]]-[[1*z]]"), json!("xx--z")),
        (json!("[[x*y]] [[2y]] [[2*y"), json!("[[x*y]] [[2y]] [[2*y")),
        (json!({"times": 3, "of": {"op": "x"}}), json!([{"op": "x"}, {"op": "x"}, {"op": "x"}])),
        (json!({"a": ["[[2*x]]", 1, null, true]}), json!({"a": ["xx", 1, null, true]})),
    ] {
        assert_eq!(expand_repeats(&row), expected, "{row}");
    }
}

#[test]
fn placeholders_are_replaced_in_every_string_and_key() {
    let row = json!({"case": "with {}", "{}": ["{}", {"a{}{}": "-{}-"}], "n": 1});
    assert_eq!(fill_placeholders(&row, "X"), json!({"case": "with X", "X": ["X", {"aXX": "-X-"}], "n": 1}));
}

#[test]
fn json_text_is_parsed_in_the_keys_that_hold_json() {
    let row = json!({"script": "[1]", "grant": {"a": "{}"}, "get": "[1]", "config": null});
    assert_eq!(parse_json_values(row), json!({"script": [1], "grant": {"a": "{}"}, "get": "[1]", "config": null}));
}

#[test]
fn patches_merge_objects_replace_other_values_and_remove_keys_with_null() {
    for (target, patch, merged) in [
        (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 3}}), json!({"a": {"b": 3, "c": 2}})),
        (json!({"a": [1], "b": 1}), json!({"a": [2], "b": {"c": 1}}), json!({"a": [2], "b": {"c": 1}})),
        (json!({"a": 1, "b": 2}), json!({"a": null}), json!({"b": 2})),
        (json!({"a": 1}), Value::Null, json!({"a": 1})),
    ] {
        let mut patched = target.clone();
        merge_patch(&mut patched, &patch);
        assert_eq!(patched, merged, "{patch} over {target}");
    }
}

#[test]
fn a_string_or_an_array_becomes_a_list_of_texts() {
    for (value, expected) in
        [(Value::Null, vec![]), (json!("a"), vec!["a"]), (json!(["a", ["b"], 1]), vec!["a", "b", "1"])]
    {
        assert_eq!(texts(&value), expected);
    }
}
