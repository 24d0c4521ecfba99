//! Tokens with which a create operation can be sent again, for APIs that have them (`ClientToken`): an API
//! that gets a token a second time returns what the first request created.
//!
//! ```
//! use wasm_cpi_sdk::fake::Fake;
//! use wasm_cpi_sdk::idempotency::Tokens;
//!
//! let _host = Fake::new().install();
//! let tokens = Tokens::for_this_call();
//! let token = tokens.token("vm");
//! assert!(token.len() <= 64 && token.is_ascii());
//! assert_eq!(tokens.token("vm"), token);
//! assert_ne!(tokens.token("port 0"), token);
//! assert_ne!(Tokens::for_this_call().token("vm"), token);
//! ```
//!
//! # Which requests have the same token
//! - **Repetitions within a call** have the same token: create [`Tokens`] once per call, in
//!   [`crate::Cpi::open`], and name the resource by its role, such as `vm` or `port 0`. All parameters of the
//!   request must be the same, too; otherwise APIs refuse the token.
//! - **A new attempt after a deletion** needs another name, such as `vm 2`: for hours or days after the
//!   deletion, an API answers the old token with the resource that is gone.
//! - **Another call** has other tokens, always. If `create_vm` fails, the Director may send it again: that is
//!   a new request, with new agent settings, which must not find a VM of the first one. So the first call has
//!   to delete what it created before it returns its error, and what it leaves behind can be found by tags
//!   only.
//!
//! The ID of the request alone does not make a token: the Director draws it from 900,000 numbers, and the CLI
//! sends none. Two calls of `create_disk` with one token would get one disk. A token begins with the ID, so
//! that the cloud's own log leads to the task of the Director, and random bytes from the host make it unique.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::{config, random};

/// The longest part of the request's ID in a token.
const MAX_ID: usize = 24;

/// The number of random bytes in a token.
const RANDOM_BYTES: u32 = 10;

/// The tokens of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    prefix: String,
}

impl Tokens {
    /// Returns the tokens of the current call. Call it once: each value has other tokens.
    pub fn for_this_call() -> Self {
        let call = config::call();
        let id = call.request_id.unwrap_or(call.method);
        let plain = id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let id: String = plain.take(MAX_ID).collect();
        Self { prefix: format!("{id}-{}", random::hex(RANDOM_BYTES)) }
    }

    /// Returns the token of a resource: at most 64 letters, digits and `-`.
    pub fn token(&self, resource: &str) -> String {
        // The hash only has to tell the resources of one call apart.
        let mut hasher = DefaultHasher::new();
        resource.hash(&mut hasher);
        format!("{}-{:016x}", self.prefix, hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;
    use crate::host::Host;

    fn with_id(request_id: Option<&str>) -> Fake {
        let call = config::CallInfo { request_id: request_id.map(str::to_owned), ..Fake::new().call() };
        Fake::new().call_info(call)
    }

    #[test]
    fn a_token_begins_with_the_id_of_the_request_or_the_method() {
        let _host = with_id(Some("cpi-123456")).install();
        assert!(Tokens::for_this_call().token("vm").starts_with("cpi-123456-"));
        let _host = with_id(None).install();
        assert!(Tokens::for_this_call().token("vm").starts_with("test-"));
    }

    #[test]
    fn calls_with_the_same_id_have_different_tokens() {
        let _host = with_id(Some("cpi-123456")).install();
        assert_ne!(Tokens::for_this_call().token("vm"), Tokens::for_this_call().token("vm"));
    }

    proptest::proptest! {
        #[test]
        fn every_token_is_short_and_plain_and_names_one_resource(id in r"\PC{0,80}", a in r"\PC{0,80}", b in r"\PC{0,80}") {
            let _host = with_id(Some(&id)).install();
            let tokens = Tokens::for_this_call();
            let token = tokens.token(&a);
            assert!(token.len() <= 64 && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{token}");
            assert_eq!(tokens.token(&b) == token, a == b);
        }
    }
}
