//! Decides whether the connection of a request can carry further requests.
//!
//! A server may answer without reading the body of a request, and then takes that body for the beginning of
//! the next request on the connection. A guest could write the head of a request of its own that way, and
//! the host would add credentials and secrets to it. The author of an image could do the same.

use super::checking::reads_body;
use super::message::ImageContent;
use super::sending::CheckedRequest;
use wasm_cpi_policy::METHODS;
use wasm_cpi_policy::place::is_token;

/// Servers refuse longer request lines.
const LONGEST_LINE: usize = 64 << 10;

impl CheckedRequest {
    /// Returns true if the connection can be used again once the server has accepted the request. One of these must be
    /// true:
    ///
    /// - The request has no body.
    /// - Servers read the bodies of this method, and the body cannot be the beginning of a request, whatever follows
    ///   it. Whether it can must not depend on a secret: JSON and forms that the host writes never can.
    /// - The body is a block of the image whose beginning cannot be a request line. An image that streams from the
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
/// next request completes. Servers do not agree on blanks and ends of lines, and some accept zero bytes in a path, so
/// every byte that is not visible may be a blank here. The block cannot be a request line if one of these is true:
///
/// - It has no visible byte, as unused parts of a disk. What is visible then is the next request itself.
/// - Its first word has a character that no method has.
/// - A line ends early in it, no version is near, and neither is the first word a method nor the second one a path:
///   servers close the connection after such a line. Nearly all binary data and most text is of this kind, so that
///   few blocks of an ordinary disk need a new connection.
fn may_be_request_line(block: &[u8]) -> bool {
    let Some(start) = block.iter().position(u8::is_ascii_graphic) else { return false };
    let text = &block[start..];
    let (word, rest) = text.split_at(text.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(text.len()));
    if !word.iter().all(|byte| is_token(*byte)) {
        return false;
    }
    let head = &rest[..rest.len().min(LONGEST_LINE)];
    let target = &rest[rest.iter().position(u8::is_ascii_graphic).unwrap_or(rest.len())..];
    // Some servers end a line at a CRLF only, and then a short block can be one line together with what follows it.
    let is_ended = head.contains(&b'\n') && (rest.len() > LONGEST_LINE || head.windows(2).any(|end| end == b"\r\n"));
    let holds = |name: &[u8]| head.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name));
    let begins = |name: &[u8]| target.get(..name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name));
    let is_method = METHODS.iter().any(|method| word.eq_ignore_ascii_case(method.as_bytes()));
    !is_ended || holds(b"HTTP/") || is_method || begins(b"/") || begins(b"http")
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

    /// Returns a block with this beginning, longer than a line can be.
    fn block(beginning: &[u8]) -> Vec<u8> {
        let filler = [0x90, 0, b'x', b'\n', 0xe8, b' ', b'y', b'/'];
        beginning.iter().copied().chain(filler.into_iter().cycle()).take(128 << 10).collect()
    }

    #[test]
    fn a_block_keeps_the_connection_unless_it_begins_like_a_request() {
        let elf = b"\x7fELF\x02\x01\x01\0\0\0\0\n";
        let beginnings: [&[u8]; 9] = [
            elf,
            &[0x1f, 0x8b, 8, 0, b'\n', 0],
            b"ab\0\0cd\0\0",
            b"some text\nand more\n",
            b"#!/bin/sh\n",
            b"{\"a\": 1}\n",
            b"<a href=x>\n",
            b"root:x:0:0:root:/root:/bin/bash\n",
            b"\xeb\x63\x90",
        ];
        for beginning in beginnings {
            assert!(!may_be_request_line(&block(beginning)), "{beginning:?}");
        }
        for blank in [vec![0; 512 << 10], b"\0\r\n \x85\xa0".to_vec(), b"some text\r\n".to_vec(), b"{".to_vec()] {
            assert!(!may_be_request_line(&blank), "{:?}", &blank[..blank.len().min(16)]);
        }
    }

    #[test]
    fn a_block_that_a_server_could_read_as_a_request_line_ends_the_connection() {
        let lines = [
            "DELETE /v2/x HTTP/1.1\r\nHost: x\r\nX: ",
            "\r\n\nDELETE /v2/x http/1.1\nX: ",
            "\0\0 GET /x HTTP/1.0\rX: ",
            "GET /v2/admin?\0x HTTP/1.1\r\nX: ",
            "DELETE\0/v2/x\0HTTP/1.1\r\nX: ",
            "GET /v2/x\rHTTP/1.1\r\nX: ",
            "GET /v2/x\r\nX: ",
            "get v2/x\r\nX: ",
            "LOCK http://x/v2\r\nX: ",
            "MKCOL\n/v2/x\r\nX: ",
            "MKCOL\nv2/x\nHTTP/1.1\r\nX: ",
            "MKCOL v2/x HTTP/1.1\r\nX: ",
        ];
        for line in lines {
            assert!(may_be_request_line(line.as_bytes()), "{line}");
            assert!(may_be_request_line(&block(line.as_bytes())), "{line}");
        }
        // What comes next completes these.
        for line in ["GET /v2/admin?x=", "GET\u{a0}/x", "PROP", " PROP", "\0PROP", "MKCOL v2/x ", "MKCOL\nv2/x\n"] {
            assert!(may_be_request_line(line.as_bytes()), "{line}");
        }
        let endless: Vec<u8> = b"MKCOL\0".iter().copied().chain(std::iter::repeat_n(0, 512 << 10)).collect();
        assert!(may_be_request_line(&endless));
    }

    #[test]
    fn every_blank_of_every_server_is_one() {
        let blanks = (0..=b' ').chain(0x7f..=0xff).map(|blank| vec![blank]);
        let of_unicode = ["\u{85}", "\u{a0}", "\u{2003}", "\u{2028}", "\u{3000}", "\u{feff}"];
        for blank in blanks.chain(of_unicode.map(|blank| blank.as_bytes().to_vec())) {
            let line = [&blank, &b"MKCOL"[..], &blank, b"/v2/x", &blank, b"HTTP/1.1\r\nX: "].concat();
            assert!(may_be_request_line(&line), "{blank:?}");
            assert!(may_be_request_line(&block(&line)), "{blank:?}");
        }
    }
}
