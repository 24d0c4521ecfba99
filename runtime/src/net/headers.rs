//! Checks the method, headers and query of a guest's request.
//!
//! Headers for framing and routing are invalid, because the host sets them. Headers that ask for a part, an encoded
//! form or another charset of the response are always denied, because secrets are not found in it. If a grant sends
//! secrets, the guest's own credentials in headers and query are denied, too. If the guest does not see everything of
//! the origin's responses, so are headers that ask for a special form of them. Headers that compare are denied for
//! every origin, because every response may have values which the guest does not see. Names are normalized as the
//! policy does it.

mod names;

use crate::failure::Who;
use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exposure::Exposure;
use crate::net::method_override;
use crate::net::signing::guest_request::{self, SignedHeaders};
use crate::vault::Vault;
use names::{
    CREDENTIAL_ENDS, CREDENTIAL_PREFIXES, CREDENTIALS, IMPOSTOR_WORDS, IMPOSTORS, QUERY_CREDENTIALS, QUERY_OVERRIDES,
    UNSEARCHABLE,
};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{UnclearQuery, query_names};
use wasm_cpi_policy::{DenialReason, METHODS, is_connection_header, normalize_header_name, normalize_parameter_name};

/// The rules of a grant for the headers of one request.
pub(super) struct HeaderRules<'a> {
    pub grant: &'a str,
    pub exposure: Exposure,
    /// The header that the grant's auth sets.
    pub auth: Option<&'a str>,
    /// Headers that hold a slot of this request.
    pub slots: Vec<&'a str>,
    /// The rules for headers of signatures; `None` if the host does not sign the request.
    pub signed: Option<SignedHeaders>,
}

/// Parses a method, and rejects those that cannot be granted.
pub(super) fn method(text: &str) -> Result<Method, HttpError> {
    let unknown = || HttpError::invalid(format_args!("the method must be one of {} in upper case", METHODS.join(", ")));
    Check::MethodKnown.ensure(METHODS.contains(&text), unknown)?;
    Method::from_bytes(text.as_bytes()).map_err(|_| unknown())
}

/// Rejects headers with invalid names or values, too many or too large ones, and those that
/// only the host sets.
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
                "the name of a header must consist of letters, digits and `-_.`, and must not be empty",
            ));
        };
        let lower = lower.as_str();
        Check::HeaderFraming.ensure(!is_connection_header(&normalize_header_name(lower)), || {
            HttpError::invalid(format_args!("only the host sets the header `{lower}`; leave it out"))
        })?;
        // HTTP allows more bytes in a value, but servers read them in different ways.
        Check::HeaderValue.ensure(!value.chars().any(|c| c.is_control() && c != '\t'), || {
            let what = "holds control characters; remove or encode them";
            HttpError::invalid(format_args!("the value of the header `{lower}` {what}"))
        })?;
    }
    Ok(())
}

/// Rejects a body in which a server could find a parameter that is not seen here.
pub(super) fn check_encoding(headers: &[(String, String)], body: &[u8]) -> Result<(), HttpError> {
    Check::MethodParameter.ensure(!method_override::is_encoded(headers, body), || {
        let what =
            "a body that is compressed, or in another charset than UTF-8, could hide a parameter that changes what";
        denied(format_args!("{what} the policy judged; send it plain"))
    })
}

/// Rejects credentials of the guest's own, and headers and parameters that change the meaning of
/// the request.
pub(super) fn check_credentials(
    headers: &[(String, String)],
    query: Option<&str>,
    path: &str,
    body: &[u8],
    rules: &HeaderRules<'_>,
    vault: &Vault,
) -> Result<(), HttpError> {
    let beside_secrets = query.filter(|_| rules.exposure.sends_secrets).unwrap_or_default();
    let in_path = path_names(if rules.exposure.sends_secrets { path } else { "" });
    let parameters = query_names(beside_secrets)
        .map(|names| names.iter().chain(&in_path).map(|name| normalized(name)).collect::<Vec<String>>());
    let overrides = query.is_some_and(method_override::in_query)
        || method_override::in_body(headers, body)
        || parameters.as_ref().is_ok_and(|names| names.iter().any(|name| changes_request(name)));
    Check::MethodParameter.ensure(!overrides, || {
        denied("the parameter `_method`, or one like it, could change what the policy judged; leave it out")
    })?;
    for (name, value) in headers {
        check_header(&normalize_header_name(name), value, rules, vault)?;
    }
    if rules.signed.is_some() {
        guest_request::check_parameters(&path_names(path), query, headers, body, rules.grant)?;
    }
    let credential = parameters.map(|names| names.into_iter().find(|name| is_credential(name)));
    Check::QueryCredentials.ensure(credential.is_ok(), || denied(UnclearQuery))?;
    Check::QueryCredentials.reject(credential.ok().flatten(), |name| {
        let what = "is a credential, and the grant";
        // The rest of such a name is text of the guest, which must not occur in a message.
        let name: String = name.chars().take(16).collect();
        denied(format_args!("the query's `{name}` {what} `{}` sends its own; leave it out", rules.grant))
    })
}

/// Checks one header by its normalized name.
fn check_header(name: &str, value: &str, rules: &HeaderRules<'_>, vault: &Vault) -> Result<(), HttpError> {
    let (grant, exposure) = (rules.grant, rules.exposure);
    let set_by_auth = rules.auth.is_some_and(|auth| normalize_header_name(auth) == name);
    Check::HeaderOfAuth.ensure(!set_by_auth, || {
        denied(format_args!("the header `{name}` is set by the auth of the grant `{grant}`; leave it out"))
    })?;
    if rules.slots.iter().any(|slot| normalize_header_name(slot) == name) {
        return Check::SlotHeader.ensure(!vault.seals_in(value.as_bytes()).is_empty(), || {
            let remedy = "send the seal, or leave the header out";
            denied(format_args!("the header `{name}` is a slot and must hold a seal, but it holds none; {remedy}"))
        });
    }
    let poses = IMPOSTORS.iter().any(|prefix| name.starts_with(prefix))
        || IMPOSTOR_WORDS.iter().any(|word| has_word(name, word));
    Check::HeaderOverride.ensure(!poses, || {
        denied(format_args!("the header `{name}` could change what the policy judged; leave it out"))
    })?;
    Check::HeaderAuthorization.ensure(name != "authorization", || {
        let remedy = "the policy's `auth` sends credentials, or a slot takes a seal";
        denied(format_args!("the guest must not set the header `{name}`: {remedy}"))
    })?;
    let beside_secrets = || {
        let what = "is refused where a grant sends secrets";
        denied(format_args!("the header `{name}` {what}, as the grant `{grant}` does; leave it out"))
    };
    if let Some(signed) = rules.signed {
        signed.check(name, grant)?;
    }
    let is_signed = rules.signed.is_some() && name.starts_with(guest_request::HEADERS);
    let is_named_so = CREDENTIAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || CREDENTIAL_ENDS.iter().any(|end| name.ends_with(end));
    let credential = CREDENTIALS.contains(&name) || (is_named_so && !is_signed);
    Check::HeaderCredentials.ensure(!(exposure.sends_secrets && credential), beside_secrets)?;
    Check::HeaderCharset.ensure(!chooses_charset(name, value), || {
        let what = "asks for a charset, and the host reads responses in UTF-8";
        denied(format_args!("the header `{name}` {what}; leave the charset out"))
    })?;
    // `Request-Range` and `x-ms-range` ask for a part, too; `Content-Range` is about the request.
    let partial = has_word(name, "range") && !name.ends_with("content-range");
    let unsearchable = UNSEARCHABLE.contains(&name) || partial;
    Check::HeaderEncodingRange.ensure(!unsearchable, || {
        let what = "asks for a part or an encoded form of the response, in which secrets cannot be found";
        denied(format_args!("the header `{name}` {what}; leave it out"))
    })?;
    Check::HeaderAccept.ensure(!(exposure.hides_values && name == "accept" && !is_plain_accept(value)), || {
        let what = "asks for a form other than plain JSON or XML, in which hidden values could be at other places";
        denied(format_args!("the header `{name}` {what}; ask for `application/json`"))
    })?;
    // `*` asks whether the resource exists, and compares nothing.
    let compares = has_word(name, "if") && value.trim() != "*";
    Check::HeaderConditional.ensure(!compares, || {
        let what = "could compare values that the guest must not see";
        denied(format_args!("the header `{name}` {what} (grant `{grant}`); leave it out"))
    })
}

fn chooses_charset(name: &str, value: &str) -> bool {
    name.contains("accept-charset") || (name == "accept" && value.to_ascii_lowercase().contains("charset"))
}

/// Returns true if the value asks for the usual form of a resource. Parameters and types of vendors choose
/// others, in which places have other names.
fn is_plain_accept(value: &str) -> bool {
    const PLAIN: [&str; 7] = [
        "*/*",
        "application/*",
        "application/json",
        "application/xml",
        "text/xml",
        "text/plain",
        "application/octet-stream",
    ];
    let is_plain = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        PLAIN.contains(&media.as_str()) && parts.all(|part| part.starts_with("q="))
    };
    value.split(',').all(|range| is_plain(range.trim()))
}

fn has_word(name: &str, word: &str) -> bool {
    name.split('-').any(|part| part == word)
}

/// Returns the names of the parameters that servers find in a path, after a `;`.
pub(super) fn path_names(path: &str) -> Vec<String> {
    let path = path.to_ascii_lowercase().replace("%3b", ";");
    let parameters = path.split('/').flat_map(|segment| segment.split(';').skip(1));
    parameters
        .flat_map(|pair| url::form_urlencoded::parse(pair.as_bytes()).map(|(name, _)| name.into_owned()))
        .collect()
}

/// Returns the name of a query parameter in the form in which it is compared: as that of a header.
fn normalized(parameter: &str) -> String {
    normalize_header_name(&normalize_parameter_name(parameter))
}

/// Returns true for a query parameter that changes the method or the user of a request.
fn changes_request(parameter: &str) -> bool {
    QUERY_OVERRIDES.contains(&parameter)
}

/// Returns true for a query parameter with which a guest would send credentials of its own.
fn is_credential(parameter: &str) -> bool {
    QUERY_CREDENTIALS.contains(&parameter) || CREDENTIAL_PREFIXES.iter().any(|prefix| parameter.starts_with(prefix))
}

fn denied(what: impl std::fmt::Display) -> HttpError {
    HttpError::denied(DenialReason::Header, what)
}

/// Converts headers that passed `check`. Filled slots may have changed their values since.
pub(super) fn to_map(headers: &[(String, String)]) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| HttpError::invalid("the name of a header is invalid"))?;
        let value = secret_value(value, name.as_str())?;
        map.append(name, value);
    }
    Ok(map)
}

/// Returns a value that debug output does not show.
pub(super) fn secret_value(value: &str, name: &str) -> Result<HeaderValue, HttpError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        let what =
            format!("the value for the header `{name}` holds control characters, which are invalid; remove them");
        HttpError::failed(Who::Config, HttpErrorKind::InvalidRequest, what)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
