//! Decides whether the connection of a request can carry further requests.
//!
//! A server may answer without reading the body of a request, and then takes that body for the beginning of
//! the next request on the connection. A guest could write the head of a request of its own that way, and
//! the host would add credentials and secrets to it.

use super::message::ImageContent;
use super::sending::CheckedRequest;
use reqwest::Method;

impl CheckedRequest {
    /// Returns true if the connection can be used again once the server has accepted the request. One of these must be
    /// true:
    ///
    /// - The request has no body.
    /// - The body is a part of the image, which the guest does not choose.
    /// - The body is one that servers read, and it cannot be read as the start of a request. Whether it can must not
    ///   depend on a secret, so a secret in free text always counts as a possible start.
    pub(super) fn allows_reuse(&self) -> bool {
        match &self.image {
            Some(ImageContent::Block(_) | ImageContent::Part(_)) => true,
            Some(ImageContent::Parts(_)) => false,
            None if self.body.is_empty() => true,
            None => {
                let server_reads_body = [Method::POST, Method::PUT, Method::PATCH].contains(&self.method);
                server_reads_body && !self.secrets.in_free_text && !may_begin_request(&self.body)
            }
        }
    }
}

/// Returns true if a server that did not read this body could take it, with the head that follows, for one request. A
/// request line has blanks, or what some servers take for one, and no method begins like JSON or XML.
fn may_begin_request(body: &[u8]) -> bool {
    let is_document = matches!(body.first(), Some(b'{' | b'[' | b'"' | b'<'));
    let has_line_end = body.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
    has_line_end || !(is_document || body.iter().all(u8::is_ascii_graphic))
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
        ] {
            assert!(may_begin_request(body.as_bytes()), "{body}");
        }
    }
}
