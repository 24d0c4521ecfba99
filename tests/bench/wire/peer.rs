//! The peer: a program in Go that sends the requests of a call with net/http. It keeps its
//! connections, and logs in once per process or signs every request.

use super::access::Access;
use super::cloud::WireCloud;
use super::cpi::Call;
use super::recording::{Exchange, Replay};
use crate::Bench;
use crate::program::Program;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tests::gateway::Services;
use tests::openstack::Service;

/// Headers that a client sets itself.
const OWN_HEADERS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "x-auth-token",
    "authorization",
    "x-amz-date",
    "x-amz-content-sha256",
    "x-amz-security-token",
];

pub(super) struct Peer<S = Service> {
    program: PathBuf,
    replay: Replay<S>,
    cloud: WireCloud<S>,
    access: Arc<dyn Access<S>>,
}

/// One process of the peer.
pub(super) struct Run {
    pub(super) wall: Duration,
    pub(super) connections: usize,
    pub(super) requests: usize,
}

impl<S: Services> Peer<S> {
    pub(super) fn new(bench: &Bench, cloud: Value, access: impl Access<S>) -> Peer<S> {
        let access: Arc<dyn Access<S>> = Arc::new(access);
        let replay = Replay::new(cloud, Arc::clone(&access));
        Peer { program: bench.peer("peer-go-wire"), cloud: WireCloud::new(replay.clone()), replay, access }
    }

    /// Sends the same requests as the call, with a login or signatures of its own.
    pub(super) fn run(&self, bench: &Bench, method: &str, call: &Call<S>) -> Result<Run, String> {
        let exchanges: Vec<_> = call.exchanges.iter().filter(|exchange| !exchange.is_login()).cloned().collect();
        let cloud = self.cloud.description();
        let request = |exchange: &Exchange<S>| request(exchange, &cloud, self.access.signing_name(exchange.service));
        let requests: Vec<Value> = exchanges.iter().map(request).collect();
        let login = self.access.login().map(request);
        let logins = usize::from(login.is_some());
        let recording =
            json!({"ca": cloud["ca"], "login": login, "keys": self.access.keys(&cloud), "requests": requests});
        let recording = bench.write("recording.json", recording.to_string());
        self.replay.expect(&exchanges);
        let before = self.cloud.connections();
        let sample = Program::new(&format!("Go, {method}"), &[&self.program, &recording], &call.request).run()?;
        match self.replay.missing() {
            0 => {
                let connections = self.cloud.connections() - before;
                Ok(Run { wall: sample.wall, connections, requests: logins + exchanges.len() })
            }
            missing => Err(format!("the peer did not send {missing} requests of {method}")),
        }
    }
}

/// Describes a request for the peer. A body is Base64, because it may be an image.
fn request<S: Services>(exchange: &Exchange<S>, cloud: &Value, signing_name: Option<&str>) -> Value {
    let origin = exchange.service.origin(cloud).unwrap_or_default();
    let sent = &exchange.request;
    let own = |name: &str| OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name));
    let headers: Vec<_> = sent.headers.iter().filter(|(name, _)| !own(name)).collect();
    json!({
        "method": sent.method, "url": format!("{origin}{}", sent.target), "headers": headers,
        "body": STANDARD.encode(&exchange.body), "status": exchange.response.status, "service": signing_name,
    })
}
