//! Decides whether the connection of a request can carry further requests.
//!
//! A server may answer without reading the body of a request, and then takes that body for the beginning of
//! the next request on the connection. A guest could write the head of a request of its own that way, and
//! the host would add credentials and secrets to it.

use super::message::ImageContent;
use super::sending::CheckedRequest;
use reqwest::Method;

impl CheckedRequest {
    /// Returns true if the connection can be used again once the server has accepted the request:
    ///
    /// - The request has no body.
    /// - The body is a part of the image, which the guest does not choose.
    /// - Servers read the bodies of this method, and the body has no line end, so it holds no head of a request.
    ///   Whether it has one must not depend on a secret.
    pub(super) fn allows_reuse(&self) -> bool {
        match &self.image {
            Some(ImageContent::Block(_) | ImageContent::Part(_)) => true,
            Some(ImageContent::Parts(_)) => false,
            None if self.body.is_empty() => true,
            None => {
                let is_read = [Method::POST, Method::PUT, Method::PATCH].contains(&self.method);
                is_read && !self.secrets.in_free_text && !self.body.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
            }
        }
    }
}
