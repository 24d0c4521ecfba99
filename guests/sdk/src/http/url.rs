//! Percent-encoding for URLs. Cloud IDs come from the caller: a guest must encode
//! them with [`segment`], or a `/` in one of them changes the path.

/// Encodes `text` as one segment of a path.
///
/// The host rejects some segments, so the request fails as invalid: a `/` or `\`, even encoded,
/// a control character, and text that is already encoded, such as `%2F`. A `.` stays a `.`, and
/// `..` stays `..`: the host resolves such a segment before it compares the path with the grants,
/// so the request has another path. A guest has to reject the IDs `.`, `..` and `""` itself.
///
/// ```
/// assert_eq!(wasm_cpi_sdk::http::segment("vm/1"), "vm%2F1");
/// ```
pub fn segment(text: &str) -> String {
    encode(text.bytes())
}

/// Returns `url` with one more parameter in its query.
pub(super) fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{}={}", encode(name.bytes()), encode(value.bytes()))
}

/// Encodes fields as `application/x-www-form-urlencoded`: unreserved characters stay, a blank becomes `+`, and
/// all else is escaped in upper case. Every server that decodes forms reads this, also one that compares the
/// form with its own encoding.
pub(crate) fn form<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let encoded = |text: &str| encode(text.bytes()).replace("%20", "+");
    let pairs = fields.into_iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns a URL for messages: a query may hold values that do not belong in logs.
pub(crate) fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

fn encode(bytes: impl Iterator<Item = u8>) -> String {
    let mut text = String::new();
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_except_unreserved_characters_is_encoded() {
        for (text, encoded) in [
            ("vm-1_a.b~c", "vm-1_a.b~c"),
            ("a/b?c#d", "a%2Fb%3Fc%23d"),
            ("a b+c&d=e%", "a%20b%2Bc%26d%3De%25"),
            ("\u{fc}\n", "%C3%BC%0A"),
        ] {
            assert_eq!(segment(text), encoded);
        }
    }

    #[test]
    fn parameters_and_forms_are_joined() {
        let url = with_parameter(&with_parameter("https://c/x", "a b", "1&2"), "c", "d");
        assert_eq!(url, "https://c/x?a%20b=1%262&c=d");
        assert_eq!(form([("Action", "Run It"), ("N", "1")]), "Action=Run+It&N=1");
        assert_eq!(without_query(&url), "https://c/x");
    }

    #[test]
    fn forms_are_encoded_as_every_server_accepts_it() {
        let plain = "-._~azAZ09";
        assert_eq!(form([(plain, plain)]), format!("{plain}={plain}"));
        assert_eq!(form([("a", " *+%20/:=&\u{fc}\n")]), "a=+%2A%2B%2520%2F%3A%3D%26%C3%BC%0A");
        assert_eq!(form([]), "");
    }

    proptest::proptest! {
        #[test]
        fn a_segment_holds_no_character_that_ends_it(text in r"\PC{0,40}") {
            assert!(segment(&text).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        }
    }
}
