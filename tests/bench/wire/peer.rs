//! The peer: a program in Go that sends the requests of a call with net/http. It logs in
//! once per process and keeps its connections.

use super::cloud::WireCloud;
use super::cpi::Call;
use super::recording::{Exchange, Replay};
use crate::Bench;
use crate::program::Program;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Headers that a client sets itself.
const OWN_HEADERS: [&str; 5] = ["host", "content-length", "transfer-encoding", "connection", "x-auth-token"];

pub(super) struct Peer {
    program: PathBuf,
    replay: Replay,
    cloud: WireCloud,
    login: Exchange,
}

/// One process of the peer.
pub(super) struct Run {
    pub(super) wall: Duration,
    pub(super) connections: usize,
    pub(super) requests: usize,
}

impl Peer {
    /// `login` is the exchange of a login of the runtime.
    pub(super) fn new(bench: &Bench, cloud: Value, login: Exchange) -> Peer {
        let replay = Replay::new(cloud, login.clone());
        Peer { program: bench.peer("peer-go-wire"), cloud: WireCloud::new(replay.clone()), replay, login }
    }

    /// Sends the same requests as the call, after a login of its own.
    pub(super) fn run(&self, bench: &Bench, method: &str, call: &Call) -> Result<Run, String> {
        let exchanges: Vec<Exchange> = call.exchanges.iter().filter(|exchange| !exchange.is_login()).cloned().collect();
        let cloud = self.cloud.description();
        let requests: Vec<Value> = exchanges.iter().map(|exchange| request(exchange, &cloud)).collect();
        let recording = json!({"ca": cloud["ca"], "login": request(&self.login, &cloud), "requests": requests});
        let recording = bench.write("recording.json", recording.to_string());
        self.replay.expect(&exchanges);
        let before = self.cloud.connections();
        let sample = Program::new(&format!("Go, {method}"), &[&self.program, &recording], &call.request).run()?;
        match self.replay.missing() {
            0 => {
                let connections = self.cloud.connections() - before;
                Ok(Run { wall: sample.wall, connections, requests: 1 + exchanges.len() })
            }
            missing => Err(format!("the peer did not send {missing} requests of {method}")),
        }
    }
}

/// Describes a request for the peer. A body is Base64, because it may be an image.
fn request(exchange: &Exchange, cloud: &Value) -> Value {
    let origin = exchange.service.origin(cloud).unwrap_or_default();
    let sent = &exchange.request;
    let own = |name: &str| OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name));
    let headers: Vec<_> = sent.headers.iter().filter(|(name, _)| !own(name)).collect();
    json!({
        "method": sent.method, "url": format!("{origin}{}", sent.target), "headers": headers,
        "body": STANDARD.encode(&exchange.body), "status": exchange.response.status,
    })
}
