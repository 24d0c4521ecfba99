//! The reasons why a URL is rejected.

use wasm_cpi_checks::{Check, RefusedBy};

/// The reason why a URL is rejected. The messages quote nothing of the URL except its scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// The URL is longer than the caller allows.
    #[error("the URL has {length} bytes, more than the {limit} of `url_bytes`")]
    TooLong {
        /// The length of the URL in bytes.
        length: usize,
        /// The largest length that is allowed, in bytes.
        limit: u64,
    },
    /// The scheme is neither http nor https. The text is the scheme in lower case, cut to 32
    /// characters. Callers report this as a denial, since such a scheme cannot be granted.
    #[error("the URL's scheme is `{0}`; only http and https can be granted")]
    Scheme(String),
    /// The URL is malformed or ambiguous.
    #[error("the URL {what}")]
    Form {
        /// The text that completes the sentence "the URL …".
        what: &'static str,
        /// The check that refuses the URL, if it is a named one.
        check: Option<Check>,
    },
}

impl InvalidUrl {
    pub(super) const fn form(what: &'static str) -> InvalidUrl {
        InvalidUrl::Form { what, check: None }
    }

    /// Returns the check that refuses the URL, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        match self {
            InvalidUrl::TooLong { .. } => None,
            InvalidUrl::Scheme(_) => Some(Check::UrlScheme),
            InvalidUrl::Form { check, .. } => *check,
        }
    }
}

impl RefusedBy for InvalidUrl {
    fn refused_by(self, check: Check) -> InvalidUrl {
        match self {
            InvalidUrl::Form { what, check: known } => InvalidUrl::Form { what, check: known.or(Some(check)) },
            other => other,
        }
    }
}
