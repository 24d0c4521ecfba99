//! Inputs that are made of several texts, in a form that people can write.

use serde_json::{Map, Value};
use wasm_cpi::log::is_invisible;

/// The texts between lines of three dashes; `None` if the input is no text.
pub(crate) fn parts(data: &[u8]) -> Option<Vec<&str>> {
    Some(std::str::from_utf8(data).ok()?.split("\n---\n").collect())
}

/// Lines `Name: value` up to an empty one, and what follows.
pub(crate) fn message(text: &str) -> (Vec<(String, String)>, &str) {
    let (mut headers, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        match line.split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    (headers, rest)
}

/// For text that people see: it cannot steer a terminal, nor hide anything.
pub(crate) fn is_printable(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || is_invisible(c))
}

/// Lenient: what is no JSON object is an empty one.
pub(crate) fn object(text: Option<&&str>) -> Map<String, Value> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
