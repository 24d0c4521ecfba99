//! The cloud's own words in an error response: operators need them more than
//! anything a guest could say. Knows no cloud; looks where they usually are.

use serde_json::Value;

/// Keys that hold a message for people, best first.
const KEYS: [&str; 8] =
    ["message", "error_description", "error_message", "faultstring", "detail", "details", "title", "reason"];

/// Longer texts are cut: they go into one line of a log.
const MAX_CHARS: usize = 500;

/// What the body says, `None` if it says nothing that can be shown.
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

/// The first message of the outermost object that has one.
fn in_json(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => {
            let here = KEYS.iter().find_map(|key| match object.get(*key) {
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

/// The text of `<Message>`, which most XML APIs have.
fn in_xml(text: &str) -> Option<&str> {
    ["Message", "message", "faultstring"].iter().find_map(|name| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once('<').map(|(message, _)| message)
    })
}

/// The words of a page: some gateways and services answer HTML.
fn without_tags(text: &str) -> String {
    if !text.starts_with('<') {
        return text.to_owned();
    }
    // A title mostly repeats the heading.
    let body = text.split_once("</head>").map_or(text, |(_, body)| body);
    let mut words = String::new();
    for part in body.split('<') {
        words.push(' ');
        words.push_str(part.split_once('>').map_or(part, |(_, after)| after));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_where_clouds_put_it() {
        for (body, text) in [
            (r#"{"message":"no quota"}"#, "no quota"),
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
    fn nothing_is_made_of_nothing_and_long_texts_are_cut() {
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
