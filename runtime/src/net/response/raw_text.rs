//! Removes byte order marks and escapes of JSON, XML and URLs from texts before they are searched.

use std::borrow::Cow;

/// The start of an escape of JSON, which may hide any letter of a name.
pub(super) const ESCAPE: &str = "\\u";

/// Returns the bytes without the byte order mark of UTF-8, which parsers refuse.
pub(super) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns the text with the letters that JSON's `\u` escapes mean. Of an escape that is not a
/// character of Latin-1, only the `u` is removed.
pub(super) fn without_escapes(text: &str) -> String {
    let mut pieces = text.split(ESCAPE);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(code.map_or('\\', char::from));
        plain.push_str(code.map_or(piece, |_| &piece[4..]));
    }
    plain
}

/// Returns the text with the bytes that `%` and two digits mean.
pub(in crate::net) fn without_percent(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut plain = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                plain.extend(&piece.as_bytes()[2..]);
            }
            None => plain.extend([b"%", piece.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Returns the text with the characters that escapes of XML and of URLs mean; `None` if it has none.
pub(super) fn decode_escapes(text: &str) -> Option<String> {
    let unescaped = without_references(text);
    let decoded = without_percent(&unescaped);
    (decoded != text).then_some(decoded)
}

/// Returns the text with the characters that `&quot;` and the like mean.
fn without_references(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split('&');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let meant = piece.split_once(';').and_then(|(name, rest)| Some((referenced(name)?, rest)));
        match meant {
            Some((character, rest)) => plain.extend([character.to_string().as_str(), rest]),
            None => plain.extend(["&", piece]),
        }
    }
    Cow::Owned(plain)
}

/// Returns the character that a reference of XML or HTML means.
fn referenced(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hexadecimal = number.strip_prefix(['x', 'X']);
        let code = hexadecimal.map_or_else(|| number.parse(), |digits| u32::from_str_radix(digits, 16));
        return code.ok().and_then(char::from_u32);
    }
    let known =
        [("quot", '"'), ("apos", '\''), ("amp", '&'), ("lt", '<'), ("gt", '>'), ("colon", ':'), ("lowbar", '_')];
    known.into_iter().find(|(known, _)| *known == name).map(|(_, character)| character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_latin_1_become_letters_and_others_lose_their_mark() {
        for (text, expected) in [
            ("plain", "plain"),
            ("p\\u0061ss", "pass"),
            ("\\u00e4", "ä"),
            ("\\u20ac", "\\20ac"),
            ("\\u12", "\\12"),
            ("\\u00zz", "\\00zz"),
        ] {
            assert_eq!(without_escapes(text), expected);
        }
    }

    #[test]
    fn escapes_of_xml_and_urls_become_characters() {
        for (text, expected) in [
            ("&quot;a&#34;&#x22;&#X22;&apos;", Some("\"a\"\"\"'")),
            ("%22a%5Fb%5f%3A", Some("\"a_b_:")),
            ("&amp;quot;", Some("&quot;")),
            ("%2522", Some("%22")),
            ("&#37;22", Some("\"")),
            ("100% &co; & &#x110000; &#; %zz &quot", None),
            ("plain", None),
        ] {
            assert_eq!(decode_escapes(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn only_a_byte_order_mark_at_the_start_is_removed() {
        assert_eq!(without_byte_order_mark(b"\xef\xbb\xbf{}"), b"{}");
        assert_eq!(without_byte_order_mark(b"{}\xef\xbb\xbf"), b"{}\xef\xbb\xbf");
    }
}
