//! What a guest may write into a request that the host signs.
//!
//! The host signs every header that is sent, so a header of the guest would have the authority of the operator's
//! keys. The time is not the guest's to choose. Of the headers of this protocol only those on a list are accepted, which describe the body. A request with a
//! form has no query, in which the server could find another operation than the judged one, and neither of them has a
//! parameter that belongs to a signature.

use crate::net::error::HttpError;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{Place, is_read_as_form, parse_form};
use wasm_cpi_policy::{Auth, DenialReason, Grant, OperationPlace, normalize_parameter_name};

/// How the names of the protocol's headers begin.
pub(in crate::net) const HEADERS: &str = "x-amz";

/// The header of HTTP with the time, which servers may read in place of the protocol's.
const TIME: &str = "date";

/// Headers that describe the body of a request.
const DESCRIPTIONS: [&str; 7] = [
    "x-amz-changedblockscount",
    "x-amz-checksum",
    "x-amz-checksum-aggregation-method",
    "x-amz-checksum-algorithm",
    "x-amz-checksum-sha256",
    "x-amz-data-length",
    "x-amz-progress",
];

/// The header that names the operation of some APIs.
const TARGET: &str = "x-amz-target";

/// Parameters that belong to a signature, as `normalize_parameter_name` returns them, beside those that begin like
/// `SIGNATURE_PREFIX`.
const PARAMETERS: [&str; 8] = [
    "accesskeyid",
    "awsaccesskeyid",
    "expires",
    "securitytoken",
    "signature",
    "signaturemethod",
    "signatureversion",
    "timestamp",
];
const SIGNATURE_PREFIX: &str = "x_amz_";

/// The rules for headers of one grant whose requests are signed.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct SignedHeaders {
    /// True if the policy judges the operation that the target names.
    judges_target: bool,
}

impl SignedHeaders {
    /// Returns the rules, if requests of the grant are signed.
    pub(in crate::net) fn of(grant: &Grant) -> Option<SignedHeaders> {
        let signs = matches!(grant.auth, Some(Auth::SigV4(_)));
        let in_target =
            |place: &OperationPlace| matches!(place, OperationPlace::At(Place::Header(name)) if name == TARGET);
        let judges_target = grant.operations.as_ref().is_some_and(|operations| in_target(&operations.place));
        signs.then_some(SignedHeaders { judges_target })
    }

    /// Rejects a header of the protocol, by its normalized name, unless it is on the list.
    pub(in crate::net) fn check(self, name: &str, grant: &str) -> Result<(), HttpError> {
        let listed = DESCRIPTIONS.contains(&name) || (name == TARGET && self.judges_target);
        Check::SignedHeader.ensure(listed || !(name.starts_with(HEADERS) || name == TIME), || {
            let remedy =
                if name == TARGET { "the grant's `operations` would have to judge it" } else { "leave it out" };
            // The rest of such a name is text of the guest, which must not occur in a message.
            let name: String = name.chars().take(24).collect();
            denied(format_args!("the header `{name}` could change what the grant `{grant}` signs; {remedy}"))
        })
    }
}

/// Rejects parameters of the path, the query or a form that belong to a signature, and a query beside a form. `in_path`
/// are the names that servers find in the path, after a `;`.
pub(in crate::net) fn check_parameters(
    in_path: &[String],
    query: Option<&str>,
    headers: &[(String, String)],
    body: &[u8],
    grant: &str,
) -> Result<(), HttpError> {
    let is_form = !body.is_empty() && is_read_as_form(headers);
    let query = query.unwrap_or_default();
    Check::SignedFormQuery.ensure(!is_form || query.is_empty(), || {
        let what = "has both a query and a form, in which the server could find different operations";
        denied(format_args!("the request, which the grant `{grant}` signs, {what}; send all parameters in the form"))
    })?;
    let fields = if is_form { parse_form(body) } else { Ok(Vec::new()) };
    let unclear = fields.is_err();
    Check::SignedParameter.ensure(!unclear, || {
        let what = "is not a form as servers read it; encode it properly, or say with Content-Type what it is";
        denied(format_args!("the body of the request, which the grant `{grant}` signs, {what}"))
    })?;
    let in_query = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
    let in_form = fields.unwrap_or_default().into_iter().map(|(name, _)| name);
    let all = in_path.iter().cloned().chain(in_query).chain(in_form);
    let found = all.map(|name| normalize_parameter_name(&name)).find(|name| is_of_signature(name));
    Check::SignedParameter.reject(found, |name| {
        let name: String = name.chars().take(16).collect();
        let what = "belongs to a signature, and the grant";
        denied(format_args!("the parameter `{name}` {what} `{grant}` signs the request itself; leave it out"))
    })
}

fn is_of_signature(name: &str) -> bool {
    PARAMETERS.contains(&name) || name.starts_with(SIGNATURE_PREFIX)
}

fn denied(what: impl std::fmt::Display) -> HttpError {
    HttpError::denied(DenialReason::Header, what)
}
