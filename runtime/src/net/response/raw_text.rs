//! Removes byte order marks and JSON escapes from bodies before they are searched.

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
    fn only_a_byte_order_mark_at_the_start_is_removed() {
        assert_eq!(without_byte_order_mark(b"\xef\xbb\xbf{}"), b"{}");
        assert_eq!(without_byte_order_mark(b"{}\xef\xbb\xbf"), b"{}\xef\xbb\xbf");
    }
}
