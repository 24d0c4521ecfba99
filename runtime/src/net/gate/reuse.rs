//! Decides whether the connection of a request can carry further requests.
//!
//! A server may answer without reading the body of a request, and then takes that body for the beginning of
//! the next request on the connection. A guest could write the head of a request of its own that way, and
//! the host would add credentials and secrets to it. The author of an image could do the same.

use super::checking::reads_body;
use super::message::ImageContent;
use super::sending::CheckedRequest;
use wasm_cpi_policy::place::is_token;

impl CheckedRequest {
    /// Returns true if the connection can be used again once the server has accepted the request. One of these must be
    /// true:
    ///
    /// - The request has no body.
    /// - Servers read the bodies of this method, and the body cannot be the beginning of a request, whatever follows
    ///   it. Whether it can must not depend on a secret: JSON and forms that the host writes never can.
    /// - The body is a block of the image whose first line cannot be a request line. An image that streams from the
    ///   disk is not known before it is sent, and a new connection after it costs nothing beside it.
    pub(super) fn allows_reuse(&self) -> bool {
        let begins_request = match &self.image {
            Some(ImageContent::Part(_) | ImageContent::Parts(_)) => true,
            Some(ImageContent::Block(block)) => may_be_request_line(&block.content.bytes),
            None if self.body.is_empty() => return true,
            None => self.secrets.in_free_text || may_begin_request(&self.body),
        };
        reads_body(&self.method) && !begins_request
    }
}

/// Returns true if a server could read the text and the head of the next request as the head of one request. A
/// request line has blanks, or what some servers take for one, and no method begins like JSON or XML. A word
/// alone would become a part of the next method: `PROP` and `PATCH`.
fn may_begin_request(body: &[u8]) -> bool {
    let is_document = matches!(body.first(), Some(b'{' | b'[' | b'"' | b'<'));
    let has_line_end = body.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
    let is_form = body.iter().all(u8::is_ascii_graphic) && !body.iter().all(|byte| is_token(*byte));
    has_line_end || !(is_document || is_form)
}

/// Returns true if a server could read the beginning of a block as a request line, or as a part of one that the
/// next request completes. Servers skip empty lines before a request line, and close a connection on which another
/// line is not one. What comes after a line without a version has no headers, so no credentials.
fn may_be_request_line(block: &[u8]) -> bool {
    let Some(start) = block.iter().position(|byte| *byte > b' ') else { return false };
    let text = &block[start..];
    let method = text.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(text.len());
    // Some servers take other characters for blanks.
    let ends = text.get(method).is_none_or(|byte| matches!(byte, b'\t'..=b'\r' | b' ' | 0x80..));
    let line_end = text.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    let has_version = |line: &[u8]| line.windows(5).any(|part| part.eq_ignore_ascii_case(b"HTTP/"));
    method > 0 && ends && line_end.is_none_or(|end| has_version(&text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_body_that_cannot_be_a_request_line_keeps_the_connection() {
        for body in
            ["{\"a\":\"b c\"}", "[1, 2]", "\"a b\"", "<a>b c</a>", "Action=Start&Name=a+b%20c", "{}", "\u{7b}\u{e4} }"]
        {
            assert!(!may_begin_request(body.as_bytes()), "{body}");
        }
        for body in [
            "GET /admin/users?x=",
            "DELETE\t/v2/x?y=",
            "GET\u{b}/x",
            "GET\u{a0}/x",
            " {}",
            "{\n}",
            "<a>\r</a>",
            "a=b c",
            "\u{e4}",
            "PROP",
            "a&b",
        ] {
            assert!(may_begin_request(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn a_block_keeps_the_connection_unless_it_begins_like_a_request() {
        let zeros = [0; 4096];
        let gzip = [0x1f, 0x8b, 8, 0, b'\n', 0];
        for block in [&zeros, &gzip[..], b"ab\0cd", b"some text\nand more\n", b"GET /\nHost: x\n", b"\xeb\x63\x90"] {
            assert!(!may_be_request_line(block), "{block:?}");
        }
        for block in [
            "DELETE /v2/x HTTP/1.1\r\nHost: x\r\nX: ",
            "\r\n\nDELETE /v2/x http/1.1\nX: ",
            "\0\0 GET /x HTTP/1.0\rX: ",
            "GET /v2/admin?x=",
            "GET\u{a0}/x",
            "PROP",
            " PROP",
        ] {
            assert!(may_be_request_line(block.as_bytes()), "{block}");
        }
    }
}
