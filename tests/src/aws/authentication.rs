//! Decides who sent a request: verifies its signature, its time and its session token.
//!
//! Each API reports a failure with its own codes. The decision is the same for all.

use super::clock;
use super::error::Error;
use super::service::Api;
use super::signature::{self, Authorization, Scope, UNSIGNED};
use super::state::{AccessKey, State};
use crate::gateway::Request;
use std::time::SystemTime;

/// How far the time of a request may be from the time of the cloud, in seconds.
const MAX_SKEW: i64 = 300;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    /// There is no signature, or it is in the query.
    Missing,
    /// The header or its parts are malformed, or a header is not signed that must be.
    Incomplete(String),
    UnknownKey,
    /// The session token is missing, or it is not the token of the key.
    WrongToken,
    ExpiredToken,
    /// Signed for another service, region or day.
    WrongScope(String),
    /// Signed in the past.
    TooOld(String),
    /// Signed in the future.
    TooNew(String),
    /// Another body than the signed one.
    WrongPayload(String),
    /// The canonical request, and the text that would have to be signed.
    Mismatch {
        canonical: String,
        to_sign: String,
    },
}

/// Returns the key that signed this request. `service` is the name in the signature's
/// scope.
pub(super) fn verify(
    state: &State,
    api: Api,
    service: &str,
    request: &Request,
    body: &[u8],
) -> Result<AccessKey, Error> {
    check(state, service, request, body).map_err(|refusal| refusal.error(api))
}

fn check(state: &State, service: &str, request: &Request, body: &[u8]) -> Result<AccessKey, Refusal> {
    let incomplete = |text: &str| Refusal::Incomplete(text.to_owned());
    let authorization = single(request, "authorization")?.ok_or(Refusal::Missing)?;
    if request.query.iter().any(|(name, _)| name.to_lowercase().starts_with("x-amz-")) {
        return Err(incomplete("A request with the header Authorization must not have X-Amz-* in its query."));
    }
    let authorization = Authorization::parse(authorization).map_err(Refusal::Incomplete)?;
    check_signed_headers(request, &authorization.signed)?;
    let time = single(request, "x-amz-date")?.ok_or_else(|| incomplete("The header X-Amz-Date is missing."))?;
    let signed_at = clock::parse_basic(time).ok_or_else(|| incomplete("The header X-Amz-Date is not a time."))?;
    let key = state.key(&authorization.key).ok_or(Refusal::UnknownKey)?;
    check_scope(&authorization.scope, &Scope::new(signed_at, &state.region, service))?;
    check_time(state.now(), signed_at)?;
    let payload = payload(state, request, body)?;
    let canonical = signature::canonical_request(request, &authorization.signed, &payload);
    let to_sign = signature::string_to_sign(time, &authorization.scope, &canonical);
    if signature::sign(&key.secret, &authorization.scope, &to_sign) != authorization.signature {
        return Err(Refusal::Mismatch { canonical, to_sign });
    }
    check_token(&key, single(request, "x-amz-security-token")?, state.now())?;
    Ok(key)
}

/// Returns the value of a header that occurs at most once.
fn single<'a>(request: &'a Request, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut found = request.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(Refusal::Incomplete(format!("The header {name} occurs twice."))),
        (first, None) => Ok(first.map(|(_, value)| value.as_str())),
    }
}

/// All headers that change what a request means must be signed.
fn check_signed_headers(request: &Request, signed: &[String]) -> Result<(), Refusal> {
    for (name, _) in &request.headers {
        let name = name.to_lowercase();
        let matters = name == "host" || name == "content-type" || name.starts_with("x-amz-");
        if matters && !signed.contains(&name) {
            return Err(Refusal::Incomplete(format!("The header {name} is not signed.")));
        }
    }
    for name in ["host", "x-amz-date"].into_iter().chain(signed.iter().map(String::as_str)) {
        if single(request, name)?.is_none() {
            return Err(Refusal::Incomplete(format!("The signed header {name} is missing.")));
        }
    }
    Ok(())
}

fn check_scope(scope: &Scope, expected: &Scope) -> Result<(), Refusal> {
    if scope == expected {
        return Ok(());
    }
    let text = format!("Credential should be scoped to {}, got {}.", expected.text(), scope.text());
    Err(Refusal::WrongScope(text))
}

fn check_time(now: SystemTime, signed_at: SystemTime) -> Result<(), Refusal> {
    let skew = clock::seconds(now) - clock::seconds(signed_at);
    let (now, then) = (clock::format_basic(now), clock::format_basic(signed_at));
    if skew > MAX_SKEW {
        return Err(Refusal::TooOld(format!("Signature expired: {then} is now earlier than {now} - 5 min.")));
    }
    if skew < -MAX_SKEW {
        return Err(Refusal::TooNew(format!("Signature not yet current: {then} is still later than {now} + 5 min.")));
    }
    Ok(())
}

/// Returns the payload's hash as it is in the canonical request.
fn payload(state: &State, request: &Request, body: &[u8]) -> Result<String, Refusal> {
    let hash = signature::sha256(body);
    match single(request, "x-amz-content-sha256")? {
        None => Ok(hash),
        Some(UNSIGNED) if state.allows_unsigned_payload => Ok(UNSIGNED.to_owned()),
        Some(announced) if announced == hash => Ok(hash),
        Some(_) => Err(Refusal::WrongPayload("The header x-amz-content-sha256 does not match the body.".to_owned())),
    }
}

fn check_token(key: &AccessKey, token: Option<&str>, now: SystemTime) -> Result<(), Refusal> {
    if key.token.as_deref() != token {
        return Err(Refusal::WrongToken);
    }
    if key.expires.is_some_and(|expires| expires <= now) { Err(Refusal::ExpiredToken) } else { Ok(()) }
}

impl Refusal {
    fn error(self, api: Api) -> Error {
        match api {
            Api::Ec2 => self.ec2_error(),
            Api::Ebs => self.ebs_error(),
            Api::Elb | Api::ElbV2 | Api::Sts => self.query_error(),
        }
    }

    /// EC2 says little: almost everything is `AuthFailure`.
    fn ec2_error(self) -> Error {
        let failure = || {
            let message = "AWS was not able to validate the provided access credentials";
            Error::with_status(401, "AuthFailure", message)
        };
        match self {
            Refusal::Missing => Error::new("MissingParameter", "The request must contain the parameter AWSAccessKeyId"),
            Refusal::Incomplete(why) => Error::new("IncompleteSignature", why),
            Refusal::ExpiredToken => Error::new("RequestExpired", "Request has expired."),
            Refusal::TooOld(why) => Error::new("RequestExpired", format!("Request has expired. {why}")),
            Refusal::UnknownKey
            | Refusal::WrongToken
            | Refusal::WrongScope(_)
            | Refusal::TooNew(_)
            | Refusal::WrongPayload(_)
            | Refusal::Mismatch { .. } => failure(),
        }
    }

    /// The query APIs quote the canonical request if the signature does not match.
    fn query_error(self) -> Error {
        let forbidden = |code: &str, message: &str| Error::with_status(403, code, message);
        match self {
            Refusal::Missing => forbidden("MissingAuthenticationToken", "Request is missing Authentication Token"),
            Refusal::Incomplete(why) => Error::new("IncompleteSignature", why),
            Refusal::UnknownKey | Refusal::WrongToken => {
                forbidden("InvalidClientTokenId", "The security token included in the request is invalid.")
            }
            Refusal::ExpiredToken => forbidden("ExpiredToken", "The security token included in the request is expired"),
            Refusal::WrongScope(why) | Refusal::TooOld(why) | Refusal::TooNew(why) | Refusal::WrongPayload(why) => {
                forbidden("SignatureDoesNotMatch", &why)
            }
            Refusal::Mismatch { canonical, to_sign } => forbidden(
                "SignatureDoesNotMatch",
                &format!(
                    "The request signature we calculated does not match the signature you provided. Check your AWS \
                     Secret Access Key and signing method. Consult the service documentation for details.\n\n\
                     The Canonical String for this request should have been\n'{canonical}'\n\n\
                     The String-to-Sign should have been\n'{to_sign}'\n"
                ),
            ),
        }
    }

    fn ebs_error(self) -> Error {
        let Error { status, code, message } = self.query_error();
        let code = match code.as_str() {
            "MissingAuthenticationToken" => "MissingAuthenticationTokenException",
            "IncompleteSignature" => "IncompleteSignatureException",
            "InvalidClientTokenId" => "UnrecognizedClientException",
            "ExpiredToken" => "ExpiredTokenException",
            _ => "InvalidSignatureException",
        };
        Error { status, code: code.to_owned(), message }
    }
}
