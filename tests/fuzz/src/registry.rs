//! The answer of a registry: accepted settings are exactly those that it sent.

use crate::loopback::{answered, port};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wasm_cpi::fuzzing::Limits;
use wasm_cpi::fuzzing::{RegistryClient, RegistryConfig};
use wasm_cpi_policy::strict_json;

const PASSWORD: &str = "password-of-the-registry";
const KIB: u64 = 1;

/// The input has the status in its first line, and then the body.
pub(crate) fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (status, body) = text.split_once('\n').unwrap_or(("200", text));
    let status: u16 = status.parse().unwrap_or(200);
    let endpoint = format!("http://127.0.0.1:{}/", port());
    let section = json!({"endpoint": endpoint, "user": "director", "password": PASSWORD});
    let config: RegistryConfig = serde_json::from_value(section).expect("this section is valid");
    let limits = Limits { registry_kib: KIB, ..Limits::default() };
    let client = RegistryClient::new(&config, &limits).expect("plain http needs no certificates");
    let answer = format!("HTTP/1.1 {status:03} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let seen = answered(&[answer.as_bytes()], client.get("vm-1", Instant::now() + Duration::from_secs(60)));
    assert_eq!(seen.requests.len(), 1);
    assert!(seen.requests[0].starts_with(b"GET /instances/vm-1/settings HTTP/1.1\r\n"));
    match seen.result {
        Ok(None) => assert_eq!(status, 404),
        Ok(Some(settings)) => check(status, body, settings),
        Err(failure) => {
            let message = failure.to_string();
            assert!(!message.contains(PASSWORD) && message.len() < 2000, "{message}");
        }
    }
}

fn check(status: u16, body: &str, settings: Map<String, Value>) {
    assert_eq!(status, 200);
    let sent: Value = serde_json::from_str(body).expect("an answer with settings is JSON");
    let text = sent["settings"].as_str().expect("settings are a text");
    assert!(text.len() as u64 <= KIB * 1024);
    assert_eq!(serde_json::from_str::<Map<String, Value>>(text).ok().as_ref(), Some(&settings));
    assert!(strict_json::depth(&Value::Object(settings)) <= 64);
}
