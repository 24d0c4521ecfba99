//! The operations `http` and `session`, and their failures.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use wasm_cpi_sdk::bindings::bosh::cpi::http as wire;
use wasm_cpi_sdk::host;

use super::{Failure, as_json};
use crate::encoding::{from_base64, to_base64};

/// The default number of bytes of a response's body in the outcome.
const KEEP: usize = 64 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: Headers,
    /// A string is sent unchanged, every other value as JSON.
    body: Option<Value>,
    body_base64: Option<String>,
    /// True to send the whole image.
    #[serde(default)]
    image: bool,
    image_member: Option<String>,
    timeout_ms: Option<u32>,
    keep: Option<usize>,
}

/// An object, or an array of pairs if names repeat.
#[derive(Deserialize)]
#[serde(untagged)]
enum Headers {
    Object(Map<String, Value>),
    Pairs(Vec<(String, String)>),
}

impl Default for Headers {
    fn default() -> Self {
        Self::Pairs(vec![])
    }
}

impl Request {
    fn headers(&self) -> Vec<(String, String)> {
        match &self.headers {
            Headers::Object(object) => object.iter().map(|(name, value)| (name.clone(), as_json(value))).collect(),
            Headers::Pairs(pairs) => pairs.clone(),
        }
    }

    fn body(&self) -> Result<wire::Body, Failure> {
        if let Some(member) = &self.image_member {
            return Ok(wire::Body::Image(wire::ImagePart::Member(member.clone())));
        }
        if self.image {
            return Ok(wire::Body::Image(wire::ImagePart::Whole));
        }
        if let Some(text) = &self.body_base64 {
            let bytes = from_base64(text).ok_or_else(|| Failure::new("script", "body_base64 is not base64"))?;
            return Ok(wire::Body::Bytes(bytes));
        }
        Ok(self.body.as_ref().map_or(wire::Body::None, |body| wire::Body::Bytes(as_json(body).into_bytes())))
    }
}

pub(super) fn send(request: &Request) -> Result<Value, Failure> {
    let wire = wire::Request {
        method: request.method.clone().unwrap_or_else(|| "GET".to_owned()),
        url: request.url.clone(),
        headers: request.headers(),
        body: request.body()?,
        timeout_ms: request.timeout_ms,
    };
    let response = host::current().http_send(&wire).map_err(failure)?;
    Ok(show(response, request.keep.unwrap_or(KEEP)))
}

fn show(response: wire::Response, keep: usize) -> Value {
    let mut headers = Map::new();
    for (name, value) in response.headers {
        let joined = match headers.get(&name).and_then(Value::as_str) {
            Some(before) => format!("{before}, {value}"),
            None => value,
        };
        headers.insert(name, joined.into());
    }
    let length = response.body.len();
    let kept = &response.body[..length.min(keep)];
    let mut shown = json!({"status": response.status, "headers": headers, "bytes": length});
    match std::str::from_utf8(kept) {
        Ok(text) => shown["body"] = text.into(),
        Err(_) => shown["body_base64"] = to_base64(kept).into(),
    }
    shown
}

pub(super) fn failure(error: wire::Error) -> Failure {
    use wire::ErrorKind as Kind;
    let failure = match error.kind {
        Kind::Denied(denial) => Failure::new("denied", error.message).with("reason", reason(denial)),
        Kind::Limit(name) => Failure::new("limit", error.message).with("limit", name),
        Kind::InvalidRequest => Failure::new("invalid-request", error.message),
        Kind::Dns => Failure::new("dns", error.message),
        Kind::Connect => Failure::new("connect", error.message),
        Kind::Tls => Failure::new("tls", error.message),
        Kind::Timeout => Failure::new("timeout", error.message),
        Kind::Protocol => Failure::new("protocol", error.message),
        Kind::Truncated => Failure::new("truncated", error.message),
        Kind::Cancelled => Failure::new("cancelled", error.message),
    };
    failure.with("sent", error.sent)
}

fn reason(denial: wire::Denial) -> &'static str {
    use wire::Denial;
    match denial {
        Denial::Undeclared => "undeclared",
        Denial::Scheme => "scheme",
        Denial::Host => "host",
        Denial::Port => "port",
        Denial::Method => "method",
        Denial::Path => "path",
        Denial::Query => "query",
        Denial::Operation => "operation",
        Denial::Address => "address",
        Denial::Header => "header",
        Denial::Slot => "slot",
        Denial::Credential => "credential",
        Denial::Leak => "leak",
    }
}
