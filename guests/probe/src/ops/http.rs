//! The operations `http`, `http.all`, `http.blocks` and `session`, and their failures.

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
    parts: Option<Vec<Part>>,
    timeout_ms: Option<u32>,
    keep: Option<usize>,
}

/// A part of a body: text, the whole image, or a file of the image.
#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Text(String),
    Whole { image: bool },
    Member { image_member: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Blocks {
    url: String,
    #[serde(default)]
    headers: Headers,
    image_member: Option<String>,
    block_bytes: u32,
    #[serde(default)]
    first_index: u32,
    #[serde(default)]
    skip_zero_blocks: bool,
    timeout_ms: Option<u32>,
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

impl Headers {
    fn pairs(&self) -> Vec<(String, String)> {
        match self {
            Headers::Object(object) => object.iter().map(|(name, value)| (name.clone(), as_json(value))).collect(),
            Headers::Pairs(pairs) => pairs.clone(),
        }
    }
}

impl Part {
    fn wire(&self) -> wire::BodyPart {
        match self {
            Part::Text(text) => wire::BodyPart::Bytes(text.as_bytes().to_vec()),
            Part::Whole { image } => {
                assert!(image, "a part of a body: `image` is true, or left out");
                wire::BodyPart::Image(wire::ImagePart::Whole)
            }
            Part::Member { image_member } => wire::BodyPart::Image(wire::ImagePart::Member(image_member.clone())),
        }
    }
}

impl Request {
    fn wire(&self) -> Result<wire::Request, Failure> {
        Ok(wire::Request {
            method: self.method.clone().unwrap_or_else(|| "GET".to_owned()),
            url: self.url.clone(),
            headers: self.headers.pairs(),
            body: self.body()?,
            timeout_ms: self.timeout_ms,
        })
    }

    fn body(&self) -> Result<wire::Body, Failure> {
        if let Some(parts) = &self.parts {
            return Ok(wire::Body::Parts(parts.iter().map(Part::wire).collect()));
        }
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
    let response = host::current().http_send(&request.wire()?).map_err(failure)?;
    Ok(show(response, request.keep.unwrap_or(KEEP)))
}

/// Sends all requests at once. The result has `ok` or `error` for each.
pub(super) fn send_all(requests: &[Request]) -> Result<Value, Failure> {
    let wires = requests.iter().map(Request::wire).collect::<Result<Vec<_>, Failure>>()?;
    let outcomes = host::current().http_send_all(&wires);
    let shown = requests.iter().zip(outcomes).map(|(request, outcome)| match outcome {
        Ok(response) => json!({"ok": show(response, request.keep.unwrap_or(KEEP))}),
        Err(error) => json!({"error": Value::from(failure(error))}),
    });
    Ok(Value::Array(shown.collect()))
}

pub(super) fn send_blocks(blocks: &Blocks) -> Result<Value, Failure> {
    let member = blocks.image_member.clone();
    let upload = wire::BlockUpload {
        url: blocks.url.clone(),
        headers: blocks.headers.pairs(),
        image: member.map_or(wire::ImagePart::Whole, wire::ImagePart::Member),
        block_bytes: blocks.block_bytes,
        first_index: blocks.first_index,
        skip_zero_blocks: blocks.skip_zero_blocks,
        timeout_ms: blocks.timeout_ms,
    };
    match host::current().http_send_blocks(&upload) {
        Ok(done) => Ok(json!({
            "sent": done.sent,
            "skipped": done.skipped,
            "sha256_of_digests": done.sha256_of_digests,
            "etags": done.etags,
        })),
        Err(wire::BlocksError::Failed(error)) => Err(failure(error)),
        Err(wire::BlocksError::Refused(response)) => {
            let message = "the server refused a block";
            Err(Failure::new("refused", message).with("response", show(response, KEEP)))
        }
    }
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
