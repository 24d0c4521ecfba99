//! Inputs that consist of several texts, in a format that people can write.

use serde_json::{Map, Value};

/// Returns the texts between lines of three dashes, or None if the input is not UTF-8.
pub(crate) fn parts(data: &[u8]) -> Option<Vec<&str>> {
    Some(std::str::from_utf8(data).ok()?.split("\n---\n").collect())
}

/// Returns the lines `Name: value` up to an empty one, and the text after it.
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

/// Returns true if the text cannot control a terminal, and hides nothing.
pub(crate) fn is_printable(text: &str) -> bool {
    text.chars().all(is_harmless)
}

/// Returns true unless it is a control character, or one that is invisible or reverses
/// text.
pub(crate) fn is_harmless(c: char) -> bool {
    let hides = match u32::from(c) {
        0xad | 0x61c | 0x180e | 0xfeff => true,
        0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfff9..=0xfffb => true,
        code => code >> 8 == 0xe00 && code & 0xff < 0x80,
    };
    !c.is_control() && !hides
}

/// Returns the JSON object of a text, or an empty one if the text is something else.
pub(crate) fn object(text: Option<&&str>) -> Map<String, Value> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
