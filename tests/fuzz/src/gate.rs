//! The complete path of a guest's request, to a server and back. A request that arrives
//! was granted, is well-formed and holds no seal. The answer shows no secret. A
//! refused request is never sent.

use crate::bytes::shows;
use crate::http::Head;
use crate::input::{message, parts};
use crate::loopback::{answered, port};
use crate::policy::is_below;
use serde_json::{Map, json};
use std::cell::LazyCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use wasm_cpi::fuzzing::HttpErrorKind;
use wasm_cpi::fuzzing::Limits;
use wasm_cpi::fuzzing::Vault;
use wasm_cpi::fuzzing::{Gate, GateParts, GuestBody, GuestRequest};
use wasm_cpi_policy::secret::{Layer, Secret};
use wasm_cpi_policy::{Policy, PolicyFile, Properties};

const AGENT: &str = "settings of an agent";
const TOKEN: &str = "token-of-the-operator";
const PASSWORD: &str = "password-for-the-login";

const GRANTED: [(&str, &str); 5] = [
    ("GET", "/v1/**"),
    ("POST", "/v1/servers"),
    ("DELETE", "/v1/servers/*"),
    ("PUT", "/open/**"),
    ("GET", "/session/**"),
];

/// The request line of the login, which the host sends before a request below `/session`.
const LOGIN: &str = "POST /login HTTP/1.1";

thread_local! {
    static POLICY: LazyCell<Arc<Policy>> = LazyCell::new(|| Arc::new(policy()));
}

/// The input is `METHOD URL`, with `@` for the origin; the message, with `@A@` for the
/// seal of the agent settings; and the answers of the server.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    // Inputs that already hold a secret prove nothing.
    if [AGENT, TOKEN, PASSWORD]
        .iter()
        .any(|secret| parts.iter().take(2).any(|part| shows(part.as_bytes(), secret.as_bytes())))
    {
        return;
    }
    let vault = Arc::new(Vault::new());
    let seal = vault.seal("agent", Secret::new(AGENT), Layer::Call);
    vault.register("token", Secret::new(TOKEN));
    vault.register("password", Secret::new(PASSWORD));
    let origin = format!("http://127.0.0.1:{}", port());
    let (method, url) = parts[0].split_once(' ').unwrap_or((parts[0], "@/v1/x"));
    let text = parts.get(1).unwrap_or(&"").replace("@A@", &seal);
    let (headers, sent) = message(&text);
    let request = GuestRequest {
        method: method.to_owned(),
        url: url.replacen('@', &origin, 1).replace("@A@", &seal),
        headers,
        body: if sent.is_empty() { GuestBody::None } else { GuestBody::Bytes(sent.as_bytes().to_vec()) },
        timeout_ms: None,
    };
    let answers: Vec<String> = parts.iter().skip(2).take(4).map(|answer| answer.replace('\n', "\r\n")).collect();
    let answers: Vec<&[u8]> = answers.iter().map(String::as_bytes).collect();
    let limits = Limits { http_response_mib: 1, ..Limits::default() };
    let policy = POLICY.with(|policy| Arc::clone(policy));
    let gate = Gate::new(GateParts::minimal(policy, vault.clone(), limits));
    let (sent, deadline) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(60));
    let seen = answered(&answers, gate.send(request, deadline, &sent));

    let (logins, own): (Vec<_>, Vec<_>) =
        seen.requests.iter().filter(|request| !request.is_empty()).partition(|one| one.starts_with(LOGIN.as_bytes()));
    let session = own.iter().any(|one| one.starts_with(b"GET /session"));
    let allowed = if session { 2 } else { 1 };
    assert!(own.len() <= allowed && logins.len() <= 2, "{} requests, {} logins", own.len(), logins.len());
    logins.iter().for_each(|login| check_login(login));
    // The server of the login chooses the token, so the token can be a text that is secret elsewhere.
    let tokens: Vec<String> = answers.iter().filter_map(|answer| token_in(answer)).collect();
    let server_chose = |secret: &str| tokens.iter().any(|token| shows(token.as_bytes(), secret.as_bytes()));
    let may_hold_settings = text.contains(&seal);
    for request in &own {
        check_arrived(request, &seal);
        assert!(
            server_chose(AGENT) || !shows_settings_outside_slot(request, may_hold_settings),
            "the settings arrived"
        );
        assert!(server_chose(PASSWORD) || !shows(request, PASSWORD.as_bytes()), "the password arrived");
    }
    // An error has fixed words, and the server may choose a token that equals some of them.
    let answered = !logins.is_empty() && seen.result.is_ok();
    let token = answers.first().filter(|_| answered).and_then(|answer| token_in(answer));
    // Errors return the guest's own words, even if a server makes them its token.
    let own_words = |token: &str| parts.iter().take(2).any(|part| shows(part.as_bytes(), token.as_bytes()));
    let token = token.filter(|token| token.len() >= 12 && !own_words(token));
    let secrets = [AGENT, TOKEN, PASSWORD].into_iter().map(str::to_owned).chain(token);
    let shown: Vec<Vec<u8>> = match seen.result {
        Ok(response) => {
            let heads = response.headers.into_iter().flat_map(|(name, value)| [name.into_bytes(), value.into_bytes()]);
            heads.chain([response.body]).collect()
        }
        Err(error) => {
            assert!(error.sent || own.is_empty(), "the request was sent, but the error says that it was not: {error}");
            assert!(!matches!(error.kind, HttpErrorKind::Timeout), "the request timed out: {error}");
            // A refusal quotes the guest's request, which can hold anything.
            if error.sent { vec![error.message.into_bytes()] } else { Vec::new() }
        }
    };
    for secret in secrets {
        assert!(!shown.iter().any(|text| shows(text, secret.as_bytes())), "the guest sees `{secret}`");
    }
}

fn policy() -> Policy {
    let to = format!("http://127.0.0.1:{}", port());
    let loopback = json!(["127.0.0.0/8"]);
    let slot = json!({"method": "POST", "path": "/v1/servers", "place": "json:/server/user_data"});
    let login = json!({"to": to, "path": "/login", "addresses": loopback, "plain_http": true, "body": {"pw": "${password}"},
        "token": "header:X-Subject-Token", "expires": {"at": "json:/expires"}, "send": {"header": "X-Auth-Token"},
        "show": {"catalog": "json:/catalog"}});
    let file = json!({"version": 1, "trust_undeclared": true, "logins": {"id": login}, "http": [
        {"id": "read", "to": to, "methods": ["GET"], "paths": ["/v1/**"], "addresses": loopback, "plain_http": true,
         "auth": {"bearer": "${token}"}},
        {"id": "create", "to": to, "methods": ["POST"], "paths": ["/v1/servers"], "addresses": loopback,
         "plain_http": true, "auth": {"bearer": "${token}"}, "slots": [slot]},
        {"id": "delete", "to": to, "methods": ["DELETE"], "paths": ["/v1/servers/*"], "addresses": loopback},
        {"id": "open", "to": to, "methods": ["PUT"], "paths": ["/open/**"], "addresses": loopback},
        {"id": "session", "to": to, "methods": ["GET"], "paths": ["/session/**"], "addresses": loopback,
         "plain_http": true, "auth": {"login": "id"}},
    ]});
    let file = PolicyFile::parse(&file.to_string()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let job = json!({"token": TOKEN, "password": PASSWORD}).as_object().cloned().unwrap_or_default();
    let properties = Properties::merge(job, Map::new());
    Policy::resolve(&file, &properties, None, &[], true).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn token_in(answer: &[u8]) -> Option<String> {
    let (head, _) = Head::last(answer)?;
    head.headers.into_iter().find(|(name, _)| name == "x-subject-token").map(|(_, value)| value)
}

/// Asserts that a login has the content that the policy defines, whatever the guest sent.
fn check_login(arrived: &[u8]) {
    let text = String::from_utf8_lossy(arrived);
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
    assert_eq!(body, Some(format!("{{\"pw\":\"{PASSWORD}\"}}").as_str()));
    assert!(!text.contains(TOKEN) && !text.contains(AGENT));
}

/// Returns true if a request has agent settings in another place than the body of a `POST` whose
/// guest sent their seal.
fn shows_settings_outside_slot(arrived: &[u8], sealed: bool) -> bool {
    let text = String::from_utf8_lossy(arrived);
    let (head, _) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    text.contains(AGENT) && !(sealed && head.starts_with("POST ") && !head.contains(AGENT))
}

fn check_arrived(arrived: &[u8], seal: &str) {
    let text = String::from_utf8_lossy(arrived);
    let (head, body) = text.split_once("\r\n\r\n").expect("a request has a head");
    let mut lines = head.split("\r\n");
    let line: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, "HTTP/1.1"] = line[..] else { panic!("the request line is malformed: {line:?}") };
    let path = target.split('?').next().unwrap_or_default();
    let granted = |(own, pattern): &(&str, &str)| *own == method && is_below(pattern, path);
    assert!(GRANTED.iter().any(granted), "{method} {target} arrived without a grant");

    let headers: Vec<(&str, &str)> = lines.map(|line| line.split_once(": ").unwrap_or((line, ""))).collect();
    let values = |name: &str| -> Vec<&str> {
        headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| *value).collect()
    };
    assert_eq!(values("host"), [format!("127.0.0.1:{}", port())]);
    assert!(values("transfer-encoding").is_empty() && values("upgrade").is_empty());
    // Only the host sets it, where a server may leave the body unread.
    assert!(values("connection").iter().all(|value| *value == "close"));
    let length: Vec<usize> = values("content-length").iter().filter_map(|length| length.parse().ok()).collect();
    let after_head = arrived.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| arrived.len() - at - 4);
    assert!(length == [after_head] || (length.is_empty() && body.is_empty()), "{head}");
    let ours = format!("Bearer {TOKEN}");
    let bearer = ["GET", "POST"].contains(&method) && path.starts_with("/v1");
    assert_eq!(values("authorization"), if bearer { vec![ours.as_str()] } else { Vec::new() });
    assert!(!path.starts_with("/session") || values("x-auth-token").len() == 1, "{head}");
    assert!(!shows(arrived, seal.as_bytes()), "a seal arrived");
}
