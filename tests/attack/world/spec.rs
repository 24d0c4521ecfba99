//! The answers of servers in one case, as data.
//!
//! `{"api.iaas.test": ANSWER, "api.iaas.test/v1/x": [ANSWER, …]}`: the most
//! specific key applies, `*` stands for all other hosts, and the last of several
//! answers repeats. An answer is an object with one of these keys:
//!
//! - `status`, with `headers`, `body` and `repeat` (sends the body that often)
//! - `raw` (text) or `raw_base64`: all bytes of the response
//! - `cut`: like `raw`, but the connection ends without TLS's close_notify
//! - `stall` (text): sends it and then nothing more
//! - `flood` (`[head, part]`): sends the head, and the part without end
//! - `drip` (`[text, milliseconds]`): sends one byte at a time, with that pause
//! - `echo`: the body is the whole request; or `"body"`: its body; or `"header"`: its header X-Data, in X-Echo
//! - `gzip`: the body is that many zeros, compressed
//! - `echo_as`, `recall_as` (see `echo`): the request, or the body of the last POST, in this form
//! - `tls` (see `Handshake`): how the handshake goes wrong
//! - `early` (text): sends it before it reads a request
//! - `never_reads`: reads nothing
//! - `ignores_bodies`, beside another key: leaves the bodies of requests unread
//! - `unasked` (text), beside another key: sends it some time after each response
//! - `tunnel`, below an address: the server is a proxy, and after its answer the
//!   requested server answers on the same connection

use super::certificates::Handshake;
use super::{ArrivedRequest, echo};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Read;
use std::time::Duration;
use tests::servers::Answer;

#[derive(Clone, Debug)]
pub(crate) struct Spec(Value);

#[derive(Default)]
pub(crate) struct Served {
    specs: HashMap<String, Vec<Spec>>,
    /// The number of answers sent so far, by key.
    answered: HashMap<String, usize>,
    /// The body of the last POST.
    posted: Vec<u8>,
}

impl Served {
    pub(crate) fn new(specs: &Value) -> Served {
        let answers = |value: &Value| match value {
            Value::Array(specs) => specs.iter().cloned().map(Spec).collect(),
            one => vec![Spec(one.clone())],
        };
        let specs = specs.as_object().into_iter().flatten();
        Served { specs: specs.map(|(key, value)| (key.clone(), answers(value))).collect(), ..Served::default() }
    }

    /// Returns the special handshake for this name or address, if there is one.
    pub(crate) fn handshake(&self, name: &str) -> Option<Handshake> {
        let specs = self.specs.get(name).or_else(|| self.specs.get("*"))?;
        let keyword = specs.iter().find_map(|spec| spec.0["tls"].as_str())?;
        Some(Handshake::from_keyword(keyword))
    }

    /// Returns what a server sends before it reads a request, and whether it ever reads.
    pub(super) fn early(&self, name: &str) -> Option<(Vec<u8>, bool)> {
        let specs = self.specs.get(name).or_else(|| self.specs.get("*"))?;
        let spec = specs.iter().find(|spec| spec.0["early"].is_string() || spec.0["never_reads"] == true)?;
        Some((spec.0["early"].as_str().unwrap_or_default().into(), spec.0["never_reads"] != true))
    }

    /// Returns true if the server at this name or address leaves bodies unread.
    pub(super) fn ignores_bodies(&self, name: &str) -> bool {
        self.specs.get(name).is_some_and(|specs| specs.iter().any(|spec| spec.0["ignores_bodies"] == true))
    }

    /// Returns what a server sends some time after each response.
    pub(super) fn unasked(&self, host: &str) -> Option<Vec<u8>> {
        let specs = self.specs.get(host)?;
        specs.iter().find_map(|spec| spec.0["unasked"].as_str()).map(|text| text.as_bytes().to_vec())
    }

    /// Returns true if the server at this address is a proxy.
    pub(super) fn tunnels(&self, address: &str) -> bool {
        self.specs.get(address).is_some_and(|specs| specs.iter().any(|spec| spec.0["tunnel"] == true))
    }

    /// Returns the answer, and whether the connection ends properly after it.
    pub(super) fn answer(&mut self, arrived: &ArrivedRequest) -> (Answer, bool) {
        if arrived.request.method() == "POST" {
            self.posted.clone_from(&arrived.request.body);
        }
        let host = arrived.host.split(':').next().unwrap_or_default().to_owned();
        let path = arrived.request.target().split('?').next().unwrap_or_default().to_owned();
        let keys = [format!("{host}{path}"), host, arrived.address.ip().to_string(), "*".to_owned()];
        let Some((key, specs)) = keys.iter().find_map(|key| Some((key, self.specs.get(key)?))) else {
            return (Spec(json!({"status": 200, "body": "{\"ok\":true}"})).answer(arrived, &self.posted), true);
        };
        let count = self.answered.entry(key.clone()).or_default();
        let spec = specs.get(*count).or(specs.last());
        *count += 1;
        spec.map_or_else(
            || (Answer::ok(""), true),
            |spec| (spec.answer(arrived, &self.posted), spec.0["cut"].is_null()),
        )
    }
}

impl Spec {
    fn answer(&self, arrived: &ArrivedRequest, posted: &[u8]) -> Answer {
        let spec = &self.0;
        let text = |value: &Value| match value {
            Value::String(text) => text.clone().into_bytes(),
            Value::Null => Vec::new(),
            other => other.to_string().into_bytes(),
        };
        for key in ["raw", "cut"] {
            if !spec[key].is_null() {
                return Answer::bytes(text(&spec[key]));
            }
        }
        if let Some(bytes) = spec["raw_base64"].as_str() {
            return Answer::bytes(STANDARD.decode(bytes).unwrap_or_else(|error| panic!("raw_base64: {error}")));
        }
        if !spec["stall"].is_null() {
            return Answer::stall(text(&spec["stall"]));
        }
        if let [head, part] = spec["flood"].as_array().map_or(&[][..], Vec::as_slice) {
            let part = text(part);
            return Answer::flood(text(head), part.repeat(65536 / part.len().max(1)));
        }
        if let [head, pause] = spec["drip"].as_array().map_or(&[][..], Vec::as_slice) {
            return Answer::Drip(text(head), Duration::from_millis(pause.as_u64().unwrap_or(1000)));
        }
        let status = spec["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
        for (key, bytes) in [("echo_as", arrived.request.raw.as_slice()), ("recall_as", posted)] {
            if let Some(form) = spec[key].as_str() {
                return echo::answer(status, form, bytes);
            }
        }
        if let Some(count) = spec["gzip"].as_u64() {
            return Answer::ok(gzipped_zeros(count)).header("Content-Encoding", "gzip");
        }
        let body = match &spec["echo"] {
            Value::Bool(true) => arrived.request.raw.clone(),
            Value::String(part) if part == "body" => arrived.request.text().as_bytes().to_vec(),
            _ => text(&spec["body"]).repeat(usize::try_from(spec["repeat"].as_u64().unwrap_or(1)).unwrap_or(1)),
        };
        let headers = spec["headers"].as_object().into_iter().flatten();
        let echoed = arrived.request.header("x-data").filter(|_| spec["echo"] == "header");
        let answer = Answer::new(status, body);
        let answer = echoed.into_iter().fold(answer, |answer, value| answer.header("X-Echo", value));
        headers.fold(answer, |answer, (name, value)| match value {
            Value::Array(values) => {
                values.iter().fold(answer, |answer, value| answer.header(name, value.as_str().unwrap_or_default()))
            }
            value => answer.header(name, value.as_str().unwrap_or_default()),
        })
    }
}

fn gzipped_zeros(count: u64) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = std::io::copy(&mut std::io::repeat(0).take(count), &mut encoder);
    written.and_then(|_| encoder.finish()).unwrap_or_else(|error| panic!("gzip: {error}"))
}
