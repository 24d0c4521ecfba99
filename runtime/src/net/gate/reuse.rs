//! Decides whether the connection of a request can carry further requests.
//!
//! A server may answer without reading the body of a request, and then takes that body for the beginning of
//! the next request on the connection. A guest could write the head of a request of its own that way, and
//! the host would add credentials and secrets to it. The author of an image could do the same; `request_line` judges
//! how an image begins.

use super::checking::reads_body;
use super::message::{GuestBodyPart, ImageContent};
use super::request_line::{LONGEST_LINE, may_be_request_line};
use super::sending::CheckedRequest;
use wasm_cpi_policy::place::is_token;

impl CheckedRequest {
    /// Returns true if the connection can be used again once the server has accepted the request. One of these must be
    /// true:
    ///
    /// - The request has no body.
    /// - Servers read the bodies of this method, and the body cannot be the beginning of a request, whatever follows
    ///   it. Whether it can must not depend on a secret: JSON and forms that the host writes never can.
    /// - Servers read the bodies of this method, and the body is an image or a block whose beginning cannot be a request
    ///   line.
    ///
    /// `image_start` is the beginning of an image that streams from the disk, and `length` that of the body.
    pub(super) fn allows_reuse(&self, image_start: &[u8], length: u64) -> bool {
        let begins_request = match &self.image {
            Some(ImageContent::Block(block)) => may_be_request_line(&block.content.bytes, true),
            Some(ImageContent::Part(_)) => may_be_request_line(image_start, image_start.len() as u64 == length),
            Some(ImageContent::Parts(parts)) => parts_may_begin_request(parts, image_start),
            None if self.body.is_empty() => return true,
            None => self.secrets.in_free_text || may_begin_request(&self.body),
        };
        reads_body(&self.method) && !begins_request
    }
}

/// Judges a body of several parts by the first one that is not empty. Text of the guest before an image could begin a
/// line that the image ends, and text after a short image could end the line that the image begins.
fn parts_may_begin_request(parts: &[GuestBodyPart], image_start: &[u8]) -> bool {
    let is_empty = |part: &&GuestBodyPart| matches!(part, GuestBodyPart::Bytes(bytes) if bytes.is_empty());
    match parts.iter().find(|part| !is_empty(part)) {
        Some(GuestBodyPart::Image(_)) => image_start.len() <= LONGEST_LINE || may_be_request_line(image_start, false),
        _ => true,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::ImagePart;

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
    fn a_body_of_parts_is_judged_by_the_first_part_with_content() {
        let long = [&b"\x7fELF\n"[..], &[0; LONGEST_LINE]].concat();
        let zeros = vec![0; 2 * LONGEST_LINE];
        let request = [&b"GET /v2/x HTTP/1.1\r\n"[..], &[0; LONGEST_LINE]].concat();
        let image = || GuestBodyPart::Image(ImagePart::Whole);
        let bytes = |text: &str| GuestBodyPart::Bytes(text.into());
        for (parts, image_start, expected) in [
            (vec![image()], &long, false),
            (vec![bytes(""), image(), bytes("GET /v2/x HTTP/1.1\r\n")], &long, false),
            (vec![bytes("{}"), image()], &long, true),
            (vec![image()], &request, true),
            (vec![bytes(""), image()], &request, true),
            (vec![bytes("GET "), image()], &long, true),
            (vec![bytes("--b\r\n"), image()], &long, true),
            // The next part can complete what a short or invisible image begins.
            (vec![image(), bytes(" /v2/x HTTP/1.1\r\n")], &b"\xff\n".to_vec(), true),
            (vec![image(), bytes("GET /v2/x HTTP/1.1\r\n")], &Vec::new(), true),
            (vec![image(), bytes("GET /v2/x HTTP/1.1\r\n")], &zeros, true),
        ] {
            let start = image_start.get(..16).unwrap_or(image_start);
            assert_eq!(parts_may_begin_request(&parts, image_start), expected, "{start:?}");
        }
    }
}
