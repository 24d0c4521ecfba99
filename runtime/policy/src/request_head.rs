//! The methods and header names of HTTP requests.
//!
//! The policy names headers for its credentials, and a guest names headers for its requests.
//! Both are checked with the same list and the same comparison of names, so that neither can
//! set a header that only the host may set.

use wasm_cpi_checks::Check;

/// The methods that a policy can grant. No other method is ever sent.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Headers of framing and routing, beside all that begin with `proxy-`.
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

/// Returns a header's name in the form in which names are compared: in lower case and with `-`
/// for `_`, because servers that pass headers on as variables do not distinguish the two.
pub fn normalize_header_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    lower.replace('_', Check::HeaderUnderscore.choose("-", "_"))
}

/// Returns true if a header, by its normalized name, controls the framing or routing of a request.
/// Only the host sets such headers.
pub fn is_connection_header(normalized: &str) -> bool {
    CONNECTION.contains(&normalized) || normalized.starts_with("proxy-")
}
