//! Scripts of calls whose requests are counted, and the table "Requests per method" in the README of a guest, with
//! which the numbers are compared.

use serde_json::Value;
use std::collections::BTreeMap;
use tests::{Response, dist};

const HEADING: &str = "## Requests per method";

/// A call. `$name` in the arguments stands for what an earlier call returned.
pub(crate) struct Row {
    method: &'static str,
    arguments: Value,
    /// The name for the cloud ID that it returns.
    returns: &'static str,
    /// The end of the type of the error, if it fails.
    error: &'static str,
}

pub(crate) fn row(method: &'static str, arguments: Value) -> Row {
    Row { method, arguments, returns: "", error: "" }
}

impl Row {
    pub(crate) fn returns(self, returns: &'static str) -> Row {
        Row { returns, ..self }
    }

    pub(crate) fn fails(self, error: &'static str) -> Row {
        Row { error, ..self }
    }
}

/// Runs all calls. `call` gets the position of the row, the method and the arguments, and returns the response and the
/// requests. Returns each method with its requests.
pub(crate) fn run_rows<T>(
    rows: Vec<Row>,
    mut call: impl FnMut(usize, &str, Value) -> (Response, T),
) -> Vec<(&'static str, T)> {
    let mut ids: BTreeMap<&str, Value> = BTreeMap::new();
    let mut traces = Vec::new();
    for (at, Row { method, arguments, returns, error }) in rows.into_iter().enumerate() {
        let (response, trace) = call(at, method, filled(&arguments, &ids));
        match error {
            "" => {
                let result = response.result();
                ids.insert(returns, if result.is_array() { result[0].clone() } else { result.clone() });
            }
            _ => assert!(response.error_type().ends_with(error), "{method}: {}", response.json),
        }
        traces.push((method, trace));
    }
    traces
}

fn filled(value: &Value, ids: &BTreeMap<&str, Value>) -> Value {
    match value {
        Value::String(text) => ids.get(text.as_str()).filter(|_| text.starts_with('$')).unwrap_or(value).clone(),
        Value::Array(items) => items.iter().map(|item| filled(item, ids)).collect(),
        Value::Object(items) => items.iter().map(|(key, item)| (key.clone(), filled(item, ids))).collect(),
        other => other.clone(),
    }
}

/// Compares the table of a README of the repository with this one. `UPDATE_EXPECT=1` rewrites the README instead.
pub(crate) fn check_table(readme: &str, table: &str) {
    let path = dist::root().join(readme);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let written = table_in(&text);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return tests::job::write(&path, text.replacen(written, table, 1).as_bytes());
    }
    assert_eq!(
        written, table,
        "the table in {readme} is outdated: run this test with UPDATE_EXPECT=1, and review the difference"
    );
}

/// Returns the table of the section with the heading.
fn table_in(readme: &str) -> &str {
    let (_, section) = readme.split_once(HEADING).unwrap_or_else(|| panic!("the README has no section `{HEADING}`"));
    let table = section.find("| method |").map(|start| &section[start..]).unwrap_or_default();
    table.split_inclusive("|\n\n").next().and_then(|table| table.strip_suffix('\n')).unwrap_or(table)
}
