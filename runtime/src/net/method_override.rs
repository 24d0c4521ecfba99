//! Finds a parameter that makes servers treat a request as one with another method.
//!
//! Frameworks read it from the query and from the body: from a form, which a POST without a
//! Content-Type is to some of them, from a part of a multipart form, and from JSON. The body is
//! searched in each form that a server could read it in, so text that only looks like such a
//! parameter is refused, too.

use serde_json::Value;
use wasm_cpi_policy::normalize_parameter_name;
use wasm_cpi_policy::place::{expect_utf8, is_read_as_form};

/// Names of the parameter as `normalize_parameter_name` returns them.
const NAMES: [&str; 2] = ["_method", "x_http_method_override"];

/// Returns true if the query of a request has the parameter.
pub(super) fn in_query(query: &str) -> bool {
    in_pairs(query.as_bytes())
}

/// Returns true if a server may find the parameter in the body of a request.
pub(super) fn in_body(headers: &[(String, String)], body: &[u8]) -> bool {
    if body.is_empty() {
        return false;
    }
    let types: Vec<String> = headers
        .iter()
        .filter(|(name, _)| wasm_cpi_policy::normalize_header_name(name) == "content-type")
        .map(|(_, value)| value.to_ascii_lowercase())
        .collect();
    let says = |word: &str| types.iter().any(|text| text.contains(word));
    let is_form = is_read_as_form(headers);
    (is_form && in_pairs(body)) || (says("multipart") && in_parts(body)) || ((is_form || says("json")) && in_json(body))
}

/// Returns true if a server could decode the body to another text, in which it finds the parameter.
pub(super) fn is_encoded(headers: &[(String, String)], body: &[u8]) -> bool {
    let values = |wanted: &'static str| {
        let named = move |name: &str| wasm_cpi_policy::normalize_header_name(name) == wanted;
        headers.iter().filter(move |(name, _)| named(name)).map(|(_, value)| value.trim().to_ascii_lowercase())
    };
    let compressed = values("content-encoding").any(|value| !matches!(value.as_str(), "" | "identity"));
    let mut types = values("content-type");
    let has_fields =
        is_read_as_form(headers) || types.any(|value| value.contains("json") || value.contains("multipart"));
    !body.is_empty() && (compressed || (has_fields && expect_utf8(headers).is_err()))
}

fn is_override(name: &str) -> bool {
    NAMES.contains(&normalize_parameter_name(name).as_str())
}

fn in_pairs(pairs: &[u8]) -> bool {
    // Some servers end a field at a `;`.
    pairs.split(|byte| *byte == b';').any(|some| url::form_urlencoded::parse(some).any(|(name, _)| is_override(&name)))
}

/// Returns true if a header of a part, or text that looks like one, has such a name, or one that a server decodes or
/// puts together.
fn in_parts(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    // A name ends at the next `name` at the latest, so that each character is read once.
    text.split("name").zip(text.split("name").skip(1)).any(|(before, after)| {
        let is_mark = |c: char| c.is_whitespace() || c == '*' || c.is_ascii_digit();
        let (marks, value) = after.split_at(after.find(|c| !is_mark(c)).unwrap_or(after.len()));
        let Some(value) = value.strip_prefix('=').map(str::trim_start) else { return false };
        let name = match value.strip_prefix('"') {
            Some(quoted) => quoted.split(['"', '\r', '\n']).next().unwrap_or_default(),
            None => value.split([';', '\r', '\n']).next().unwrap_or_default(),
        };
        // `name*0=` and `name*=charset'language'` (RFC 2231), and encoded words (RFC 2047).
        let extended = marks.contains('*') && (marks.contains(|c: char| c.is_ascii_digit()) || name.contains('\''));
        let is_encoded = (extended || name.contains("=?")) && !before.ends_with("file");
        let name = name.replace('\\', "");
        // Some servers end a name without quotes at white space, or read single quotes as quotes.
        let word = name.trim_start_matches('\'').split(|c: char| c == '\'' || c.is_whitespace()).next();
        let mut readings = [Some(name.as_str()), word].into_iter().flatten();
        is_encoded || readings.any(|one| is_override(one) || in_pairs(one.as_bytes()))
    })
}

/// Returns true if a key at the top of a JSON object has such a name.
fn in_json(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    if !text.starts_with('{') {
        return false;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => object.keys().any(|key| is_override(key)),
        Ok(_) => false,
        // A more lenient parser could read it.
        Err(_) => {
            let lower = text.to_ascii_lowercase();
            NAMES.iter().any(|name| lower.contains(name) || lower.contains(&name.replace('_', "-")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(content_type: &str) -> Vec<(String, String)> {
        let given = (!content_type.is_empty()).then(|| ("Content_Type".to_owned(), content_type.to_owned()));
        given.into_iter().collect()
    }

    #[test]
    fn a_body_that_servers_decode_is_encoded() {
        let with = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        for (headers, encoded) in [
            (with("Content-Encoding", "gzip"), true),
            (with("content_encoding", "identity, br"), true),
            (with("Content-Encoding", "identity"), false),
            (with("Content-Type", "application/json; charset=utf-16le"), true),
            (with("Content-Type", "multipart/form-data; boundary=b; charset=utf-7"), true),
            (with("Content-Type", "application/x-www-form-urlencoded; charset=ibm037"), true),
            (with("Content-Type", "application/json; charset=UTF-8"), false),
            (with("Content-Type", "application/octet-stream"), false),
            (vec![], false),
        ] {
            assert_eq!(is_encoded(&headers, b"{}"), encoded, "{headers:?}");
            assert!(!is_encoded(&headers, b""), "{headers:?}");
        }
    }

    const FORM: &str = "application/x-www-form-urlencoded";
    const MULTI: &str = "multipart/form-data; boundary=b";

    #[test]
    fn the_parameter_is_found_in_every_form_that_a_server_reads() {
        let part = |head: &str| format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\nDELETE\r\n--b--\r\n");
        for (content_type, body) in [
            (FORM, "_method=DELETE".to_owned()),
            (FORM, "a=b&_METHOD=DELETE".to_owned()),
            (FORM, "a=b;_method=DELETE".to_owned()),
            ("", "_method=DELETE".to_owned()),
            ("", r#"{"a":"&_method=DELETE&b="}"#.to_owned()),
            ("application/json, application/x-www-form-urlencoded", "x&_method=DELETE".to_owned()),
            (FORM, ".method=DELETE".to_owned()),
            (FORM, "+_method=DELETE".to_owned()),
            (FORM, "_method%00x=DELETE".to_owned()),
            (FORM, "_method%5B%5D=DELETE".to_owned()),
            (FORM, "%5B_method%5D=DELETE".to_owned()),
            (FORM, "X-HTTP-Method-Override=DELETE".to_owned()),
            (MULTI, part("name=\"_method\"")),
            (MULTI, part("name=_method")),
            (MULTI, part("name = \"%5fmethod\"")),
            (MULTI, part("name=\"_me\\thod\"")),
            (MULTI, part("name*=utf-8''_method")),
            (MULTI, part("name*=utf-8'en'_method")),
            (MULTI, part("name*=utf-7''+AF8-method")),
            (MULTI, part("name*0=\"_method\"")),
            (MULTI, part("name*0=\"_me\"; name*1=\"thod\"")),
            (MULTI, part("name*1=thod; name*0=_me")),
            (MULTI, part("name*0*=utf-8''_meth; name*1*=od")),
            (MULTI, part("name=\"=?utf-8?B?X21ldGhvZA==?=\"")),
            (MULTI, part("NAME=\"=?utf-8?Q?=5Fmethod?=\"")),
            (MULTI, part("name=_me=?utf-8?Q?thod?=")),
            (MULTI, part("name='_method'")),
            (MULTI, part("name=_method x")),
            ("multipart/mixed", part("name=_method")),
            ("application/json", r#"{"_method": "DELETE"}"#.to_owned()),
            ("application/json", "\u{feff}{\"a\": 1, \"\\u005fmethod\": \"DELETE\"}".to_owned()),
            ("application/json", "{\"_method\": \"DELETE\",}".to_owned()),
            ("application/vnd.api+json", r#"{"_METHOD": "DELETE"}"#.to_owned()),
            ("", r#"{"_method": "DELETE"}"#.to_owned()),
        ] {
            assert!(in_body(&typed(content_type), body.as_bytes()), "{content_type}: {body}");
        }
        for query in ["_method=DELETE", "a&%5fMethod=DELETE", "+.method=DELETE", "x_http_method_override=PUT"] {
            assert!(in_query(query), "{query}");
        }
    }

    #[test]
    fn other_names_and_other_bodies_are_not_refused() {
        for (content_type, body) in [
            (FORM, ""),
            (FORM, "method=DELETE&a=_method&my_method=x&_methods=x"),
            ("text/plain", "_method=DELETE"),
            ("application/octet-stream", "_method=DELETE"),
            ("application/json", r#"{"a": {"_method": "DELETE"}, "method": "_method"}"#),
            ("application/json", r#"[{"_method": 1}]"#),
            (MULTI, "--b\r\nContent-Disposition: form-data; name=method\r\n\r\n_method\r\n--b--"),
            (MULTI, "--b\r\nContent-Disposition: form-data; name=a; filename*=utf-8''%e2.txt\r\n\r\nx\r\n--b--"),
            (MULTI, "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nname *= 2; char *name = 'x'\r\n--b--"),
            ("text/xml", "<_method>DELETE</_method>"),
        ] {
            assert!(!in_body(&typed(content_type), body.as_bytes()), "{content_type}: {body}");
        }
        assert!(!in_query("method=x&payment_method=y") && !in_query(""));
    }
}
