//! Finds the cloud's own message in an error response, which helps operators most. It
//! is not written for a particular cloud, and searches the usual places.

use serde_json::Value;

/// Keys that hold a message for people, the best first.
const KEYS: [&str; 8] =
    ["message", "error_description", "error_message", "faultstring", "detail", "details", "title", "reason"];

/// The longest message: it goes into one line of a log.
const MAX_CHARS: usize = 500;

/// Returns the message in the body as one line, or `None` if there is none.
pub(super) fn cloud_text(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let found = match serde_json::from_str::<Value>(text) {
        Ok(value) => in_json(&value).unwrap_or_else(|| value.to_string()),
        Err(_) => in_xml(text).map_or_else(|| without_tags(text), str::to_owned),
    };
    let line = found.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => Some(format!("{}…", &line[..end])),
        None => (!line.is_empty()).then_some(line),
    }
}

/// Returns the first message of the outermost object that has one.
fn in_json(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => {
            // APIs write `message` or `Message`.
            let named =
                |key: &str| object.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value);
            let here = KEYS.iter().find_map(|key| match named(key) {
                Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
                _ => None,
            });
            here.or_else(|| object.values().filter(|inner| !inner.is_string()).find_map(in_json)).or_else(|| {
                match object.get("error") {
                    Some(Value::String(text)) => Some(text.clone()),
                    _ => None,
                }
            })
        }
        Value::Array(values) => values.iter().find_map(in_json),
        _ => None,
    }
}

/// Returns the text of `<Message>`, which most XML APIs have.
fn in_xml(text: &str) -> Option<&str> {
    ["Message", "message", "faultstring"].iter().find_map(|name| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once('<').map(|(message, _)| message)
    })
}

/// Returns the text of an HTML page: some gateways and services send one.
fn without_tags(text: &str) -> String {
    if !text.starts_with('<') {
        return text.to_owned();
    }
    // The title usually repeats the heading.
    let body = text.split_once("</head>").map_or(text, |(_, body)| body);
    let mut plain = String::new();
    for part in body.split('<') {
        plain.push(' ');
        plain.push_str(part.split_once('>').map_or(part, |(_, after)| after));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_the_usual_places() {
        for (body, text) in [
            (r#"{"message":"no quota"}"#, "no quota"),
            (r#"{"Message":"not authorized","Reason":"x"}"#, "not authorized"),
            (r#"{"itemNotFound":{"code":404,"message":"Server x not found"}}"#, "Server x not found"),
            (r#"{"error":{"code":409,"errors":[{"domain":"global"}],"message":"in use"}}"#, "in use"),
            (r#"{"error":"invalid_grant","error_description":"expired"}"#, "expired"),
            (r#"{"error":"invalid_grant"}"#, "invalid_grant"),
            (r#"{"errors":[{"detail":"bad size"}]}"#, "bad size"),
            (r#""just text""#, "just text"),
            (r#"{"code":5}"#, r#"{"code":5}"#),
            ("<E><Code>C</Code><Message>Not\n authorised</Message></E>", "Not authorised"),
            ("  upstream\nfailed ", "upstream failed"),
            (
                "<html><head><title>t</title></head><body><h1>404 Not Found</h1>\nno image<br /></body></html>",
                "404 Not Found no image",
            ),
        ] {
            assert_eq!(cloud_text(body.as_bytes()).as_deref(), Some(text), "{body}");
        }
    }

    #[test]
    fn an_empty_body_has_no_message_and_long_messages_are_cut() {
        assert_eq!(cloud_text(b""), None);
        assert_eq!(cloud_text(&[0xff, 0xfe]), None);
        let long = cloud_text("ä".repeat(600).as_bytes()).unwrap();
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
    }

    proptest::proptest! {
        #[test]
        fn any_body_gives_one_short_line_or_nothing(body in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            if let Some(text) = cloud_text(&body) {
                assert!(!text.is_empty() && !text.contains('\n') && text.chars().count() <= MAX_CHARS + 1);
            }
        }

        #[test]
        fn any_text_gives_one_short_line_or_nothing(body in r#"(<Message>)?[{}\[\]":,a-zé<> ]{0,60}"#) {
            if let Some(text) = cloud_text(body.as_bytes()) {
                assert!(!text.is_empty() && text.chars().count() <= MAX_CHARS + 1);
            }
        }
    }
}
