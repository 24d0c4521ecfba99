//! A step of its own: replaces texts of error responses that quote what the host signed.
//!
//! A server that computes another signature may return the canonical request, which holds the token of the session and
//! the signature or the digest of a body with secrets in it. Fields for that are removed by their names (`credential_fields`); some services
//! write it into the message instead.

use super::ResponseInScreening;
use super::documents::{Kind, kind};
use memchr::memmem;
use serde_json::Value;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{parse_json, replace_xml_texts};
use wasm_cpi_policy::{Auth, Grant};

/// What stands in a response in place of such a text.
const PLACEHOLDER: &str = "(withheld: what was signed)";

/// Parts of such texts, in lower case.
const MARKS: [&str; 7] = [
    "aws4-hmac-sha256",
    "aws4_request",
    "canonical request",
    "canonical string",
    "string to sign",
    "string-to-sign",
    "x-amz-",
];

/// Replaces such texts in an error response to a request that the host signed. Removes a body in which they cannot be
/// replaced.
pub(super) fn replace_quotations(grant: &Grant, response: &mut ResponseInScreening<'_>) {
    let ResponseInScreening { status, ref mut headers, ref mut body, .. } = *response;
    if status < 400 || !matches!(grant.auth, Some(Auth::SigV4(_))) {
        return;
    }
    Check::SignatureQuoted.perform(|| {
        headers.retain(|(_, value)| !quotes(value));
        if !holds_mark(body) {
            return;
        }
        let replaced = match kind(headers, body) {
            Kind::Json => in_json(body),
            Kind::Xml => replace_xml_texts(body, &|text| quotes(text), PLACEHOLDER)
                .ok()
                .map(|new| new.unwrap_or_else(|| body.clone())),
            Kind::Empty | Kind::Other => None,
        };
        **body = replaced.unwrap_or_default();
    });
}

fn in_json(body: &[u8]) -> Option<Vec<u8>> {
    let mut document = parse_json(body).ok()?;
    replace(&mut document);
    // The name of a member may quote it, too.
    let written = document.to_string().into_bytes();
    (!holds_mark(&written)).then_some(written)
}

fn replace(value: &mut Value) {
    match value {
        Value::String(text) if quotes(text) => PLACEHOLDER.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(replace),
        Value::Object(fields) => fields.values_mut().for_each(replace),
        _ => {}
    }
}

/// The number of hexadecimal digits of a signature, and of a digest that was signed.
const SIGNATURE_DIGITS: usize = 64;

fn quotes(text: &str) -> bool {
    holds_mark(text.as_bytes())
}

fn holds_mark(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| memmem::find(&lower, mark.as_bytes()).is_some())
        || lower.split(|byte| !byte.is_ascii_hexdigit()).any(|run| run.len() >= SIGNATURE_DIGITS)
}
