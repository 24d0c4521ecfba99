//! Why a server refuses a signature, by the code in its answer.
//!
//! The codes decide only whether the host tries once more. A guest gets the last answer in any case.

use crate::net::exchange::Received;
use serde_json::Value;
use wasm_cpi_policy::place::{Message, Place, parse_json};

/// Codes that say, or may say, that temporary keys have expired.
const EXPIRED: [&str; 8] = [
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidToken",
    "RequestExpired",
    "TokenRefreshRequired",
    "UnrecognizedClientException",
];

/// Codes that say, or may say, that the time of the request is wrong.
const SKEWED: [&str; 6] = [
    "AuthFailure",
    "InvalidSignatureException",
    "RequestExpired",
    "RequestInTheFuture",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
];

/// Larger answers do not say why a signature is refused.
const MAX_BODY: usize = 64 * 1024;

/// Returns the code of an answer that may refuse a signature, if it has exactly one.
pub(in crate::net) fn refusal_code(received: &Received) -> Option<String> {
    if !matches!(received.status, 400 | 401 | 403) || received.body.len() > MAX_BODY {
        return None;
    }
    in_header(received).or_else(|| in_json(received)).or_else(|| in_xml(received))
}

/// Returns true if such an answer may say that temporary keys have expired.
pub(in crate::net) fn is_expired(received: &Received) -> bool {
    refusal_code(received).is_some_and(|code| EXPIRED.contains(&code.as_str()))
}

/// Returns true if the code may say that the time of the request is wrong.
pub(super) fn is_skewed(code: Option<&str>) -> bool {
    code.is_some_and(|code| SKEWED.contains(&code))
}

fn in_header(received: &Received) -> Option<String> {
    let (_, value) = received.headers.iter().find(|(name, _)| name == "x-amzn-errortype")?;
    Some(plain(value))
}

fn in_json(received: &Received) -> Option<String> {
    let body: Value = parse_json(&received.body).ok()?;
    let code = ["__type", "code", "Code"].iter().find_map(|key| body.get(key)?.as_str())?;
    Some(plain(code))
}

fn in_xml(received: &Received) -> Option<String> {
    let message = Message { headers: &received.headers, body: &received.body };
    Place::Xml("Code".to_owned()).read(&message).ok()?
}

/// Returns a code without the name of its model before it and the address of its description behind it.
fn plain(code: &str) -> String {
    let code = code.split(':').next().unwrap_or_default();
    code.rsplit('#').next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(status: u16, headers: &[(&str, &str)], body: &str) -> Received {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Received {
            status,
            headers,
            body: body.as_bytes().to_vec(),
            peer: std::net::Ipv4Addr::LOCALHOST.into(),
            body_written: 0,
        }
    }

    const XML: (&str, &str) = ("content-type", "text/xml;charset=UTF-8");
    const JSON: (&str, &str) = ("content-type", "application/x-amz-json-1.1");

    #[test]
    fn codes_are_found_in_headers_json_and_xml() {
        for (status, headers, body, code) in [
            (
                400,
                vec![XML],
                "<Response><Errors><Error><Code>RequestExpired</Code></Error></Errors></Response>",
                Some("RequestExpired"),
            ),
            (
                403,
                vec![XML],
                "<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code></Error></ErrorResponse>",
                Some("ExpiredToken"),
            ),
            (
                400,
                vec![JSON],
                r#"{"__type": "com.x#ExpiredTokenException", "message": "m"}"#,
                Some("ExpiredTokenException"),
            ),
            (
                403,
                vec![JSON, ("x-amzn-errortype", "AccessDeniedException:http://x/")],
                "{}",
                Some("AccessDeniedException"),
            ),
            (500, vec![XML], "<E><Code>ExpiredToken</Code></E>", None),
            (403, vec![XML], "<E><Code>ExpiredToken</Code><Code>Other</Code></E>", None),
            (403, vec![XML], "<E><Message>ExpiredToken</Message></E>", None),
            (403, vec![("content-type", "text/plain")], "ExpiredToken", None),
            (401, vec![], "", None),
        ] {
            assert_eq!(refusal_code(&received(status, &headers, body)).as_deref(), code, "{body}");
        }
    }

    #[test]
    fn only_listed_codes_renew_keys_or_the_clock() {
        let with = |code: &str| received(400, &[JSON], &format!("{{\"__type\": \"{code}\"}}"));
        assert!(is_expired(&with("ExpiredToken")) && !is_expired(&with("UnauthorizedOperation")));
        assert!(!is_expired(&with("SignatureDoesNotMatch")));
        assert!(is_skewed(Some("RequestTimeTooSkewed")) && !is_skewed(Some("ExpiredToken")) && !is_skewed(None));
    }
}
