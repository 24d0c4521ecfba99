//! The screening of a response for the guest: known secrets and fields that are known to
//! carry credentials are removed, and captured values become seals.

use crate::bytes::{contains, shows};
use crate::input::{message, parts};
use serde_json::Value;
use wasm_cpi::fuzzing::Vault;
use wasm_cpi::fuzzing::{ResponseInScreening, seal_and_blank, search};
use wasm_cpi_policy::secret::{Layer, Secret};
use wasm_cpi_policy::{Capture, PathPattern};

/// The secrets that the vault knows. One has every character that needs escaping.
const SECRETS: [(&str, &str); 2] = [("password", "correct-horse-battery"), ("odd", "q\"\\/<&>%+ é\n0123")];

const HEADERS: [&str; 4] = ["set-cookie", "x-subject-token", "x-auth-token", "authorization"];
/// Names of fields with credentials, in the spellings that APIs use.
const FIELDS: [[&str; 3]; 4] = [
    ["adminpass", "admin_pass", "admin-pass"],
    ["adminpassword", "admin_password", "admin-password"],
    ["privatekey", "private_key", "private-key"],
    ["userdata", "user_data", "user-data"],
];

/// The input has the status and the places to capture in its first line, and then the
/// response.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    let mut words = parts[0].trim().split(' ');
    let status = words.next().and_then(|word| word.parse().ok()).unwrap_or(200);
    let captures: Vec<Capture> = words.enumerate().filter_map(|(at, word)| capture(at, word)).collect();
    let (mut headers, rest) = message(parts.get(1).unwrap_or(&""));
    let mut body = rest.as_bytes().to_vec();
    let (sent_headers, sent_body) = (headers.clone(), body.clone());
    let vault = Vault::new();
    SECRETS.iter().for_each(|(name, secret)| vault.register(name, Secret::new(*secret)));

    let mut response =
        ResponseInScreening { method: "GET", path: "/v1/x", status, headers: &mut headers, body: &mut body };
    let screened = seal_and_blank(&vault, &captures, true, Layer::Job, &mut response);
    if let Err(withheld) = screened.and_then(|_| search(&vault, &response)) {
        let leaks = |(_, secret): &(&str, &str)| withheld.message.contains(secret) && !parts[0].contains(secret);
        assert!(!SECRETS.iter().any(leaks), "{withheld}");
        return;
    }
    let texts =
        || headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]).chain([body.as_slice()]);
    for (name, secret) in SECRETS {
        assert!(!texts().any(|text| shows(text, secret.as_bytes())), "the guest sees `{name}`");
    }
    for capture in &captures {
        let sent = wasm_cpi_policy::place::Message { headers: &sent_headers, body: &sent_body };
        let value = capture.place.read(&sent).ok().flatten().unwrap_or_default();
        // The vault knows every value that was captured.
        let is_captured = vault.redact(value.trim()) == "<redacted>";
        assert!(
            value.len() < 12 || !is_captured || !texts().any(|text| contains(text, value.as_bytes())),
            "the guest sees a captured value"
        );
    }
    for (name, value) in &headers {
        let name = name.to_ascii_lowercase();
        if HEADERS.contains(&name.as_str()) || name.starts_with("proxy-") {
            let value =
                value.split_once('=').filter(|_| name == "set-cookie").map_or(value.as_str(), |(_, value)| value);
            assert!(vault.open(value).is_some(), "the guest sees `{name}`");
        }
    }
    if let Ok(document) = serde_json::from_slice::<Value>(&body) {
        check_fields(&document, false, &vault);
    }
}

fn capture(at: usize, word: &str) -> Option<Capture> {
    let path = PathPattern::parse("/v1/**").ok()?;
    Some(Capture { method: "GET".into(), path, place: word.parse().ok()?, name: format!("captured-{at}") })
}

/// Asserts that fields with these names hold only null and seals.
fn check_fields(value: &Value, inside: bool, vault: &Vault) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let local = name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
                check_fields(value, inside || FIELDS.as_flattened().contains(&local.as_str()), vault);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_fields(item, inside, vault)),
        Value::Null => {}
        Value::String(text) if vault.open(text).is_some() => {}
        other => assert!(!inside, "the guest sees {other}"),
    }
}
