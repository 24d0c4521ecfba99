//! Servers that send back all that they received, in many forms. No value that the
//! host filled into a slot may come back to the guest, however short it is.

use crate::case::{API, Case};
use crate::needles::forms;
use crate::twins::{CLASS, run};
use crate::world::{ECHO_FORMS, World};
use serde_json::{Map, Value, json};
use tests::process::contains;

/// Too short for the tripwire, just long enough for it, and a usual token.
const SECRETS: [&str; 3] = ["k3x9Qz7m", "k3x9Qz7mT5vW", "k3x9Qz7mT5vW2yB8nC4dF6gH0123456789"];

/// The statuses of the echo. Errors are shown to more people than successes.
const STATUSES: [u16; 3] = [200, 400, 500];

pub(super) fn cases() -> Vec<Case> {
    let places: [(&'static str, &'static str, &'static str, &'static str); 6] = [
        (
            "servers that echo the secret of a JSON slot, in any form",
            "json:/data",
            "application/json",
            r#"{"data": "SEAL", "name": "vm"}"#,
        ),
        (
            "servers that echo the secret of a form's slot, in any form",
            "form:data",
            "application/x-www-form-urlencoded",
            "a=b&data=SEAL",
        ),
        (
            "servers that echo the secret of an XML slot, in any form",
            "xml:/r/data",
            "text/xml",
            "<r><data>SEAL</data></r>",
        ),
        ("servers that echo the secret of a part, in any form", "part:data", "multipart/form-data; boundary=X", PART),
        ("servers that echo the secret of a header, in any form", "header:X-Data", "text/plain", "x"),
        ("servers that echo the secret of a body, in any form", "body", "text/plain", "SEAL"),
    ];
    let mut cases: Vec<Case> = places
        .into_iter()
        .map(|(name, place, kind, body)| {
            Case::new(CLASS, name, &[], move |world| {
                SECRETS.iter().try_for_each(|secret| echo_slot(world, place, kind, body, secret))
            })
            .may_contact(API)
        })
        .collect();
    cases.push(
        Case::new(CLASS, "servers that show agent settings to later calls, in any form", &[], recall_settings)
            .may_contact(API),
    );
    cases
}

const PART: &str = "--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\nSEAL\r\n--X--\r\n";

/// Sends a secret in a slot to servers that echo it, and searches all that the guest sees.
fn echo_slot(world: &World, place: &str, kind: &str, body: &str, secret: &str) -> Result<(), String> {
    let mut serve = Map::new();
    let mut script = Vec::new();
    for (form, status) in ECHO_FORMS.iter().flat_map(|form| STATUSES.map(|status| (form, status))) {
        serve.insert(format!("api.iaas.test/v1/vms/{form}{status}"), json!({"status": status, "echo_as": form}));
        let mut headers = json!({"Content-Type": kind});
        if place == "header:X-Data" {
            headers["X-Data"] = json!("{{props.password}}");
        }
        let url = format!("https://api.iaas.test/v1/vms/{form}{status}");
        let body = body.replace("SEAL", "{{props.password}}");
        script.push(json!({"op": "http", "method": "POST", "url": url, "headers": headers, "body": body}));
    }
    script.push(json!({"op": "find", "reversed": reversed(secret)}));
    let row = json!({
        "config": {"properties": {"password": secret}}, "serve": serve, "script": script,
        "grant": {"slots": [{"method": "POST", "path": "/v1/vms/*", "place": place, "takes": ["password"]}]},
    });
    let run = run(world, secret, row, &[secret]);
    let observed = run.observe(world)?;
    if !world.requests().iter().any(|one| holds(&one.request.raw, secret)) {
        return Err(format!("no server received the secret: {observed}"));
    }
    expect_hidden(&observed.texts(), secret)
}

/// A server that shows what it was sent when it is asked later, as many clouds show the
/// user-data or the command of a VM.
fn recall_settings(world: &World) -> Result<(), String> {
    let secret = SECRETS[0];
    let mut serve = Map::new();
    let mut later = Vec::new();
    for form in ["plain", "json", "field", "xml", "base64", "base64url", "settings"] {
        serve.insert(format!("api.iaas.test/v1/show/{form}"), json!({"recall_as": form}));
        later.push(json!({"op": "http", "url": format!("https://api.iaas.test/v1/show/{form}")}));
    }
    later.push(json!({"op": "find", "reversed": reversed(secret)}));
    for encodings in [json!([]), json!(["base64"])] {
        let mut create = vec![
            json!({"op": "agent.bootstrap", "vm_name": "vm-1", "encodings": encodings}),
            json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/vms", "headers": {"Content-Type": "application/json"}, "body": {"user_data": "{{0.ok}}"}}),
        ];
        create.extend(later.iter().cloned());
        let row = json!({
            "method": "create_vm", "vm_env": {"bosh": {"password": secret}}, "serve": serve, "script": create,
            "grant": {"slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/user_data"}]},
        });
        let run = run(world, "settings", row, &[secret]);
        let observed = run.observe(world)?;
        if !world.requests().iter().any(|one| holds(&one.request.raw, secret)) {
            return Err(format!("the settings were not sent: {observed}"));
        }
        expect_hidden(&observed.texts(), secret).map_err(|why| format!("with the encodings {encodings}: {why}"))?;
    }
    Ok(())
}

/// Fails if the texts hold the secret, or found it in the guest's memory.
fn expect_hidden(outcomes: &[String], secret: &str) -> Result<(), String> {
    let swapped = |c: char| if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
    let mut all: Vec<Vec<u8>> = forms(secret).into_iter().map(|(_, bytes)| bytes).collect();
    all.push(secret.chars().map(swapped).collect::<String>().into_bytes());
    all.push(reversed(secret).into_bytes());
    all.push(secret.chars().flat_map(|c| [c, ' ']).collect::<String>().into_bytes());
    for outcome in outcomes {
        if let Some(form) = all.iter().find(|form| contains(outcome.as_bytes(), form)) {
            let shown: String = outcome.chars().take(400).collect();
            return Err(format!("the guest sees `{}` in {shown}", String::from_utf8_lossy(form)));
        }
    }
    let last: Value = outcomes.last().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if last["ok"]["count"] == 0 { Ok(()) } else { Err(format!("the secret is in the guest's memory: {last}")) }
}

fn holds(raw: &[u8], secret: &str) -> bool {
    forms(secret).iter().any(|(_, form)| contains(raw, form))
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}
