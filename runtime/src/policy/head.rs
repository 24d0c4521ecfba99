//! What the head of a request is made of, whoever writes it: the policy for its
//! credentials, or a guest for its requests. One list and one way to read a name,
//! so that neither can set what the other may not.

use crate::holes::Check;

/// Those that can be granted, and sent.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Framing and routing; and all that begins with `proxy-`.
const CONNECTION: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "expect",
];

/// A header's name as servers may read it: without case, and a `_` as a `-`, since
/// those that hand headers on as variables make them the same.
pub fn plain(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if Check::HeaderUnderscore.on() { lower.replace('_', "-") } else { lower }
}

/// Whether a header, by its plain name, belongs to the connection: it would change
/// what is sent where, and is the host's alone to set.
pub fn is_of_connection(plain: &str) -> bool {
    CONNECTION.contains(&plain) || plain.starts_with("proxy-")
}
