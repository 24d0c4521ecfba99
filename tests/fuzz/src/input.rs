//! Inputs that are made of several texts, in a form that people can write.

use serde_json::{Map, Value};

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
    text.chars().all(is_harmless)
}

/// Neither a control character nor one that is not seen or turns text around.
pub(crate) fn is_harmless(c: char) -> bool {
    let hides = match u32::from(c) {
        0xad | 0x61c | 0x180e | 0xfeff => true,
        0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfff9..=0xfffb => true,
        code => code >> 8 == 0xe00 && code & 0xff < 0x80,
    };
    !c.is_control() && !hides
}

/// Lenient: what is no JSON object is an empty one.
pub(crate) fn object(text: Option<&&str>) -> Map<String, Value> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
