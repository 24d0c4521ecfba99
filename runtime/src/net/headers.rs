//! What a guest may write into the head of a request.
//!
//! Framing and routing are the host's: their headers are refused as invalid.
//! Credentials are the policy's: where a grant sends its own, or fills slots,
//! the guest's are denied, in headers and in the query, and so is whatever
//! would keep the tripwire from reading the answer. Names are read as `policy`
//! reads them.

use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::vault::Vault;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::{DenialReason, METHODS, is_connection_header, normalize_header_name};

/// They would have the server take the request for another one than was judged.
const IMPOSTORS: [&str; 7] =
    ["forwarded", "x-forwarded-", "x-http-method", "x-method-override", "x-original-", "x-real-ip", "x-rewrite-url"];

const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "x-auth-token"];
/// Signatures and keys of object stores and the like.
const CREDENTIAL_PREFIXES: [&str; 2] = ["x-amz-", "x-goog-"];
/// They would have the server answer in a form that cannot be searched.
const DISGUISES: [&str; 2] = ["accept-encoding", "range"];
/// A parameter that has servers take a POST for another method.
const METHOD_OVERRIDE: &str = "_method";

const QUERY_CREDENTIALS: [&str; 8] =
    ["access-token", "api-key", "apikey", "auth-token", "sig", "signature", "token", "x-auth-token"];

/// What a grant says about the head of this request.
pub(super) struct HeaderRules<'a> {
    pub grant: &'a str,
    /// It has auth or slots.
    pub secrets: bool,
    /// The header that its auth sets.
    pub auth: Option<&'a str>,
    /// Headers that hold a slot of this request.
    pub slots: Vec<&'a str>,
}

/// Upper case, one of those that make sense here.
pub(super) fn method(text: &str) -> Result<Method, HttpError> {
    let known = METHODS.contains(&text) || !Check::MethodKnown.on();
    let method = known.then(|| Method::from_bytes(text.as_bytes()).ok()).flatten();
    method.ok_or_else(|| HttpError::invalid(format_args!("the method is none of {} in upper case", METHODS.join(", "))))
}

/// Shape, size and framing: what holds for every request.
pub(super) fn check(headers: &[(String, String)], limits: &Limits) -> Result<(), HttpError> {
    if headers.len() as u64 > limits.http_headers {
        return Err(HttpError::limit("http_headers", limits.http_headers, "the number of headers of a request"));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes as u64 > limits.header_kib.saturating_mul(1024) {
        return Err(HttpError::limit("header_kib", limits.header_kib, "the headers of a request"));
    }
    for (name, value) in headers {
        let Ok(lower) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(HttpError::invalid(
                "a header's name holds other characters than letters, digits and `-_.`, or none",
            ));
        };
        let lower = lower.as_str();
        if Check::HeaderFraming.on() && is_connection_header(&normalize_header_name(lower)) {
            return Err(HttpError::invalid(format_args!(
                "the header `{lower}` is set by the host alone; leave it out"
            )));
        }
        // Header values are text here: what HTTP allows besides, servers read in different ways.
        if Check::HeaderValue.on() && value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(HttpError::invalid(format_args!("the value of the header `{lower}` holds control characters")));
        }
    }
    Ok(())
}

/// Credentials of the guest's own.
pub(super) fn check_credentials(
    headers: &[(String, String)],
    query: Option<&str>,
    form: Option<&str>,
    rules: &HeaderRules<'_>,
    vault: &Vault,
) -> Result<(), HttpError> {
    if Check::MethodParameter.on() && (query.is_some_and(has_override) || form.is_some_and(has_override)) {
        return Err(denied(format_args!(
            "the parameter `{METHOD_OVERRIDE}` could change what the policy judged; leave it out"
        )));
    }
    for (name, value) in headers {
        let name = normalize_header_name(name);
        let name = name.as_str();
        if Check::HeaderOfAuth.on() && rules.auth.is_some_and(|auth| normalize_header_name(auth) == name) {
            return Err(denied(format_args!(
                "the header `{name}` is set by the auth of the grant `{}`; leave it out",
                rules.grant
            )));
        }
        if rules.slots.iter().any(|slot| normalize_header_name(slot) == name) {
            if Check::SlotHeader.on() && vault.seals_in(value.as_bytes()).is_empty() {
                return Err(denied(format_args!("the header `{name}` is a slot for a seal, and holds none")));
            }
            continue;
        }
        if Check::HeaderImpostor.on() && IMPOSTORS.iter().any(|prefix| name.starts_with(prefix)) {
            return Err(denied(format_args!("the header `{name}` could change what the policy judged; leave it out")));
        }
        if Check::HeaderAuthorization.on() && name == "authorization" {
            let remedy = "the policy's `auth` sends credentials, or a slot takes a seal";
            return Err(denied(format_args!("the header `{name}` is not the guest's to set: {remedy}")));
        }
        let credential = Check::HeaderCredentials.on()
            && (CREDENTIALS.contains(&name) || CREDENTIAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
        let disguise = Check::HeaderDisguise.on() && DISGUISES.contains(&name);
        if rules.secrets && (credential || disguise) {
            let what = "is refused where a grant sends secrets";
            return Err(denied(format_args!(
                "the header `{name}` {what}, as the grant `{}` does; leave it out",
                rules.grant
            )));
        }
    }
    if let Some(name) = query.filter(|_| Check::QueryCredentials.on() && rules.secrets).and_then(credential_in_query) {
        let what = format!(
            "the query's `{name}` is a credential, and the grant `{}` sends its own; leave it out",
            rules.grant
        );
        return Err(denied(what));
    }
    Ok(())
}

fn has_override(pairs: &str) -> bool {
    url::form_urlencoded::parse(pairs.as_bytes()).any(|(name, _)| name.eq_ignore_ascii_case(METHOD_OVERRIDE))
}

/// The body, if it is of a form.
pub(super) fn form<'a>(headers: &[(String, String)], body: &'a [u8]) -> Option<&'a str> {
    let is_form = |(name, value): &(String, String)| {
        normalize_header_name(name) == "content-type" && value.to_ascii_lowercase().contains("x-www-form-urlencoded")
    };
    std::str::from_utf8(body).ok().filter(|_| headers.iter().any(is_form))
}

fn credential_in_query(query: &str) -> Option<String> {
    let names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| normalize_header_name(&name));
    let refused = |name: &String| {
        QUERY_CREDENTIALS.contains(&name.as_str()) || CREDENTIAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    // The rest of such a name is the guest's text, which does not belong in a message.
    names.into_iter().find(refused).map(|name| name.chars().take(16).collect())
}

fn denied(what: impl std::fmt::Display) -> HttpError {
    HttpError::denied(DenialReason::Header, format!("policy: {what}"))
}

/// After `check`; slots may have put other values in.
pub(super) fn to_map(headers: &[(String, String)]) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| HttpError::invalid("a header's name is none"))?;
        let value = secret_value(value, name.as_str())?;
        map.append(name, value);
    }
    Ok(map)
}

/// A value that debug output does not show.
pub(super) fn secret_value(value: &str, name: &str) -> Result<HeaderValue, HttpError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        let what =
            format!("config: the value for the header `{name}` cannot be sent as one; it holds control characters");
        HttpError::new(HttpErrorKind::InvalidRequest, what)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
