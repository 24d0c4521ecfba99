//! The whole way of a guest's request, with a server at its end: what arrives
//! there was granted, is well formed and holds no seal; what comes back shows
//! no secret; and what is refused never leaves.

use crate::bytes::shows;
use crate::input::{message, parts};
use crate::loopback::{answered, port};
use crate::policy::is_below;
use serde_json::json;
use std::cell::LazyCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasm_cpi::limits::Limits;
use wasm_cpi::net::error::HttpErrorKind;
use wasm_cpi::net::gate::{Gate, InboundResponse, OutboundBody, OutboundRequest};
use wasm_cpi::policy::{Policy, PolicyFile, Properties};
use wasm_cpi::secret::{Layer, Secret};
use wasm_cpi::vault::Vault;

const AGENT: &str = "settings of an agent";
const TOKEN: &str = "token-of-the-operator";

const GRANTED: [(&str, &str); 4] =
    [("GET", "/v1/**"), ("POST", "/v1/servers"), ("DELETE", "/v1/servers/*"), ("PUT", "/open/**")];

thread_local! {
    static POLICY: LazyCell<Arc<Policy>> = LazyCell::new(|| Arc::new(policy()));
}

/// `METHOD URL`, with `@` for the origin; the message, with `@A@` for the seal
/// of the settings; and the answer of the server.
pub(crate) fn body(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    let vault = Arc::new(Vault::new());
    let seal = vault.seal("agent", Secret::new(AGENT), Layer::Call);
    vault.keep("token", Secret::new(TOKEN));
    let origin = format!("http://127.0.0.1:{}", port());
    let (method, url) = parts[0].split_once(' ').unwrap_or((parts[0], "@/v1/x"));
    let text = parts.get(1).unwrap_or(&"").replace("@A@", &seal);
    let (headers, sent) = message(&text);
    let request = OutboundRequest {
        method: method.to_owned(),
        url: url.replacen('@', &origin, 1).replace("@A@", &seal),
        headers,
        body: if sent.is_empty() { OutboundBody::None } else { OutboundBody::Bytes(sent.as_bytes().to_vec()) },
        timeout_ms: None,
    };
    let answer = parts.get(2).unwrap_or(&"").replace('\n', "\r\n");
    let limits = Limits { http_response_mib: 1, ..Limits::default() };
    let policy = POLICY.with(|policy| Arc::clone(policy));
    let gate = Gate::new(policy, vault.clone(), &limits, true, None, None);
    let seen = answered(answer.as_bytes(), gate.send(request, Instant::now() + Duration::from_secs(60)));

    assert!(seen.requests.len() <= 1, "one request became {}", seen.requests.len());
    for arrived in &seen.requests {
        check_arrived(arrived, &seal, sent.contains(&seal) || text.contains(&seal));
    }
    match seen.result {
        Ok(response) => check_response(&response),
        Err(error) => {
            assert!(error.sent || seen.requests.iter().all(Vec::is_empty), "sent, and said not to be: {error}");
            assert!(!matches!(error.kind, HttpErrorKind::Timeout), "it hangs: {error}");
            assert!(!error.message.contains(AGENT) && !error.message.contains(TOKEN), "{error}");
        }
    }
}

fn policy() -> Policy {
    let to = format!("http://127.0.0.1:{}", port());
    let near = json!(["127.0.0.0/8"]);
    let slot = json!({"method": "POST", "path": "/v1/servers", "place": "json:/server/user_data"});
    let file = json!({"version": 1, "trust_undeclared": true, "http": [
        {"id": "read", "to": to, "methods": ["GET"], "paths": ["/v1/**"], "addresses": near, "plain_http": true,
         "auth": {"bearer": "${token}"}},
        {"id": "create", "to": to, "methods": ["POST"], "paths": ["/v1/servers"], "addresses": near,
         "plain_http": true, "auth": {"bearer": "${token}"}, "slots": [slot]},
        {"id": "delete", "to": to, "methods": ["DELETE"], "paths": ["/v1/servers/*"], "addresses": near},
        {"id": "open", "to": to, "methods": ["PUT"], "paths": ["/open/**"], "addresses": near},
    ]});
    let file = PolicyFile::parse(&file.to_string()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let job = json!({"token": TOKEN}).as_object().cloned().unwrap_or_default();
    let properties = Properties::merge(job, serde_json::Map::new());
    Policy::resolve(&file, &properties, None, &[], true).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn check_arrived(arrived: &[u8], seal: &str, sealed: bool) {
    // A connection without a request is one that the client gave up.
    if arrived.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(arrived);
    let (head, body) = text.split_once("\r\n\r\n").expect("a request has a head");
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, "HTTP/1.1"] = words[..] else { panic!("no request line: {words:?}") };
    let path = target.split('?').next().unwrap_or_default();
    let granted = |(own, pattern): &(&str, &str)| *own == method && is_below(pattern, path);
    assert!(GRANTED.iter().any(granted), "{method} {target} arrives");

    let headers: Vec<(&str, &str)> = lines.map(|line| line.split_once(": ").unwrap_or((line, ""))).collect();
    let values = |name: &str| -> Vec<&str> {
        headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| *value).collect()
    };
    assert_eq!(values("host"), [format!("127.0.0.1:{}", port())]);
    assert!(values("transfer-encoding").is_empty() && values("connection").is_empty() && values("upgrade").is_empty());
    let length: Vec<usize> = values("content-length").iter().filter_map(|length| length.parse().ok()).collect();
    let arrived_body = &arrived[head.len().min(arrived.len())..];
    assert!(length == [arrived_body.len().saturating_sub(4)] || (length.is_empty() && body.is_empty()), "{head}");
    let ours = format!("Bearer {TOKEN}");
    let secrets = ["GET", "POST"].contains(&method);
    assert_eq!(values("authorization"), if secrets { vec![ours.as_str()] } else { Vec::new() });
    assert!(!shows(arrived, seal.as_bytes()), "a seal arrives");
    if text.contains(AGENT) {
        assert!(method == "POST" && sealed && !head.contains(AGENT), "{head}");
    }
}

fn check_response(response: &InboundResponse) {
    let heads = response.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    for text in heads.chain([response.body.as_slice()]) {
        assert!(!shows(text, AGENT.as_bytes()) && !shows(text, TOKEN.as_bytes()), "a secret comes back");
    }
}
