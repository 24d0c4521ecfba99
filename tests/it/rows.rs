//! The language of the corpus' rows says what it seems to say.

use serde_json::{Value, json};
use tests::rows::{expanded, filled, lay_over, structured, texts};

#[test]
fn repetitions_are_written_out() {
    for (written, meant) in [
        (json!("a[[3*bc]]d"), json!("abcbcbcd")),
        (json!("[[2*x]]-[[0*y]]-[[1*z]]"), json!("xx--z")),
        (json!("[[x*y]] [[2y]] [[2*y"), json!("[[x*y]] [[2y]] [[2*y")),
        (json!({"times": 3, "of": {"op": "x"}}), json!([{"op": "x"}, {"op": "x"}, {"op": "x"}])),
        (json!({"a": ["[[2*x]]", 1, null, true]}), json!({"a": ["xx", 1, null, true]})),
    ] {
        assert_eq!(expanded(&written), meant, "{written}");
    }
}

#[test]
fn values_stand_in_every_string_and_key() {
    let row = json!({"case": "with {}", "{}": ["{}", {"a{}{}": "-{}-"}], "n": 1});
    assert_eq!(filled(&row, "X"), json!({"case": "with X", "X": ["X", {"aXX": "-X-"}], "n": 1}));
}

#[test]
fn json_as_text_becomes_json_where_a_row_has_json() {
    let row = json!({"script": "[1]", "grant": {"a": "{}"}, "get": "[1]", "config": null});
    assert_eq!(structured(row), json!({"script": [1], "grant": {"a": "{}"}, "get": "[1]", "config": null}));
}

#[test]
fn patches_merge_objects_replace_the_rest_and_remove_with_null() {
    for (target, patch, merged) in [
        (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 3}}), json!({"a": {"b": 3, "c": 2}})),
        (json!({"a": [1], "b": 1}), json!({"a": [2], "b": {"c": 1}}), json!({"a": [2], "b": {"c": 1}})),
        (json!({"a": 1, "b": 2}), json!({"a": null}), json!({"b": 2})),
        (json!({"a": 1}), Value::Null, json!({"a": 1})),
    ] {
        let mut laid = target.clone();
        lay_over(&mut laid, &patch);
        assert_eq!(laid, merged, "{patch} over {target}");
    }
}

#[test]
fn texts_are_one_or_many() {
    for (value, expected) in
        [(Value::Null, vec![]), (json!("a"), vec!["a"]), (json!(["a", ["b"], 1]), vec!["a", "b", "1"])]
    {
        assert_eq!(texts(&value), expected);
    }
}
