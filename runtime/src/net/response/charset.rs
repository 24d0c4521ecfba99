//! Recognises responses that are text in another charset than UTF-8.
//!
//! Secrets, fields and settings are searched for as UTF-8. In UTF-16 none of them would be found,
//! so such a response is treated like a compressed one. Files that are not text have no charset.

/// Names of charsets in which this program reads text.
const UTF8: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];

/// Charsets in which the bytes of ASCII mean ASCII. Old servers name them for their error pages.
const LIKE_ASCII: [&str; 4] = ["iso-8859-1", "latin1", "iso-8859-15", "windows-1252"];

/// Types of files that are not text.
const FILES: [&str; 10] = [
    "application/octet-stream",
    "binary/octet-stream",
    "application/gzip",
    "application/x-gzip",
    "application/zip",
    "application/x-tar",
    "application/x-xz",
    "application/zstd",
    "application/pdf",
    "application/x-iso9660-image",
];
const FILE_PREFIXES: [&str; 4] = ["audio/", "font/", "image/", "video/"];

/// Returns true if a body is neither text in UTF-8 nor a file of another kind.
pub(super) fn is_foreign(headers: &[(String, String)], body: &[u8]) -> bool {
    let types = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let types: Vec<String> = types.map(|(_, value)| value.to_ascii_lowercase()).collect();
    if !types.is_empty() && types.iter().all(|value| is_file(value)) {
        return false;
    }
    let read = |value: &String| match charset(value) {
        None => true,
        // Of other types, values may be removed later, and must not decide about the response.
        Some(name) if LIKE_ASCII.contains(&name) => is_page(value, body) && body.is_ascii(),
        Some(name) => UTF8.contains(&name),
    };
    !is_text(body) || !types.iter().all(read)
}

/// Returns true for a page of HTML, of which no values are removed.
fn is_page(content_type: &str, body: &[u8]) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence == "text/html" && body.trim_ascii_start().starts_with(b"<")
}

/// Returns true for UTF-8 without zeros, which UTF-16 has beside every ASCII character.
pub(super) fn is_text(body: &[u8]) -> bool {
    memchr::memchr(0, body).is_none() && std::str::from_utf8(body).is_ok()
}

fn is_file(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let prefixed = FILE_PREFIXES.iter().any(|prefix| essence.starts_with(prefix));
    FILES.contains(&essence) || (prefixed && !essence.contains("xml"))
}

/// Returns the charset that a Content-Type names, in lower case; an empty one if it cannot be read.
fn charset(content_type: &str) -> Option<&str> {
    let (_, rest) = content_type.split_once("charset")?;
    let value = rest.trim_start().strip_prefix('=').unwrap_or_default();
    Some(value.split(';').next().unwrap_or_default().trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_utf8_only() {
        let utf16: Vec<u8> = "{\"a\": \"b\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf32: Vec<u8> = "ab".chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
        let latin1 = b"{\"a\": \"\xfc\"}";
        for (content_type, body, foreign) in [
            ("application/json", &b"{}"[..], false),
            ("", b"{}", false),
            ("application/json; charset=UTF-8", "{\"a\": \"ü\"}".as_bytes(), false),
            ("application/json; charset=\"utf-8\"; x=y", b"{}", false),
            ("text/plain;charset=US-ASCII", b"a", false),
            ("text/html; charset=iso-8859-1", b"<html>", false),
            ("text/html; charset=iso-8859-1", b"{\"password\": \"a\"}", true),
            ("application/json; charset=iso-8859-1", b"{\"password\": \"a\"}", true),
            ("application/xml; charset=iso-8859-1", b"<a/>", true),
            ("text/html; charset=iso-8859-1", "<html>ü".as_bytes(), true),
            ("text/html; charset=iso-8859-1", latin1, true),
            ("application/json; charset=utf-16", b"{}", true),
            ("application/json; charset=utf-7", b"{}", true),
            ("application/json; charset*=utf-8''utf-16", b"{}", true),
            ("application/json; charset = ibm037", b"{}", true),
            ("application/json; charset=", b"{}", true),
            ("application/json; charset=utf-8; charset=utf-16", &utf16, true),
            ("application/json", &utf16, true),
            ("text/yaml", &utf32, true),
            ("application/json", latin1, true),
            ("application/cbor", b"\xa1\x61a\x61b", true),
            ("application/vnd.msgpack", b"\x81\xa1a\xa1b", true),
            ("image/svg+xml", &utf16, true),
            ("", &utf16, true),
            ("application/octet-stream", &utf16, false),
            ("image/png", b"\x89PNG\0", false),
        ] {
            let headers = [("Content-Type".to_owned(), content_type.to_owned())];
            let headers = if content_type.is_empty() { &[][..] } else { &headers };
            assert_eq!(is_foreign(headers, body), foreign, "{content_type}: {body:?}");
        }
        let twice = ["image/png", "application/json"].map(|value| ("content-type".to_owned(), value.to_owned()));
        assert!(is_foreign(&twice, &utf16));
    }
}
