//! Percent-encoding for what a guest puts into URLs. Cloud IDs come from the
//! outside: a path must be made of [`segment`]s, or a `/` in one changes it.

/// `text` as one segment of a path.
pub fn segment(text: &str) -> String {
    encode(text.bytes())
}

/// `url` with one more parameter in its query.
pub(super) fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{}={}", encode(name.bytes()), encode(value.bytes()))
}

/// Fields as `application/x-www-form-urlencoded`.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{}={}", encode(name.bytes()), encode(value.bytes()));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// A URL for messages: queries may hold what logs should not.
pub(super) fn without_query(url: &str) -> &str {
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
    fn everything_but_unreserved_characters_is_encoded() {
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
        assert_eq!(form(&[("Action", "Run It"), ("N", "1")]), "Action=Run%20It&N=1");
        assert_eq!(without_query(&url), "https://c/x");
    }

    proptest::proptest! {
        #[test]
        fn a_segment_never_leaves_its_place(text in r"\PC{0,40}") {
            assert!(segment(&text).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        }
    }
}
