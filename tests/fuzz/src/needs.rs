//! The needs of a guest: they can only narrow what the operator granted, and what
//! `check` and `inspect` print of them cannot control a terminal.

use crate::input::is_printable;
use crate::policy::FORBIDDEN;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::place::Message;
use wasm_cpi_policy::{Endpoint, Grant, Needs, Policy, PolicyFile, Properties, Slot, Verdict};

const REQUESTS: [(&str, &str); 10] = [
    ("GET", "https://api.iaas.test/v1/servers"),
    ("GET", "https://api.iaas.test/v1/servers/1"),
    ("POST", "https://api.iaas.test/v1/servers"),
    ("DELETE", "https://api.iaas.test/v1/servers/1"),
    ("POST", "https://api.iaas.test/v2"),
    ("GET", "https://a.zones.iaas.test/"),
    ("GET", "https://eu.store.iaas.test:8443/x"),
    ("PUT", "https://eu.store.iaas.test:8443/x/y"),
    ("GET", "http://10.0.0.9/"),
    ("GET", "https://elsewhere.test/v1/servers"),
];

static FILE: LazyLock<PolicyFile> = LazyLock::new(|| {
    let slot = |place: &str, takes: &[&str]| json!({"method": "POST", "path": "/v1/*", "place": place, "takes": takes});
    let policy = json!({"version": 1, "expose": "declared", "http": [
        {"id": "compute", "to": "${api}", "methods": ["GET", "POST", "DELETE"], "paths": ["/v1/**"],
         "slots": [slot("json:/server/user_data", &["agent"]), slot("header:x-key", &["key", "agent"])]},
        {"id": "zones", "to": "https://*.zones.iaas.test", "methods": ["GET"], "paths": ["/"]},
        {"id": "store", "to": "https://${region}.store.iaas.test:8443", "methods": ["GET", "PUT"], "paths": ["/x/**"]},
        {"id": "near", "to": "http://10.0.0.9", "methods": ["GET"], "paths": ["/**"], "addresses": ["10.0.0.0/8"]},
    ]});
    PolicyFile::parse(&policy.to_string()).unwrap_or_else(|problems| panic!("{problems:#?}"))
});

pub(crate) fn fuzz(data: &[u8]) {
    let needs = match Needs::parse(data) {
        Ok(needs) => needs,
        Err(problems) => return problems.iter().for_each(|problem| assert_printable(&problem.to_string())),
    };
    let job = json!({"api": "https://api.iaas.test/v1", "region": "eu", "key": "k", "password": "p", "zone": {"a": 1}});
    let properties = Properties::merge(job.as_object().cloned().unwrap_or_default(), serde_json::Map::new());
    let everything = json!({"version": 1, "registry": true, "image": true, "expose": ["zone"], "logins": "*",
        "http": [{"id": "any", "to": "*", "methods": "*", "paths": "*", "slots": "*", "operations": "*"}]});
    let everything = Needs::parse(everything.to_string().as_bytes()).expect("these needs are valid");
    let (narrow, wide) = (resolve(&properties, &needs), resolve(&properties, &everything));
    for (method, url) in REQUESTS {
        let destination = Destination::parse(url, 8192).expect("these URLs are valid");
        if let Some(grant) = allows(&narrow, method, &destination) {
            let granted = allows(&wide, method, &destination).expect("needs do not widen a policy");
            assert_eq!(grant.id, granted.id);
            assert!(grant.slots.iter().all(|slot| granted.slots.iter().any(|wide| is_within(slot, wide))));
        }
    }
    for (name, value) in [("password", json!("p")), ("key", json!("k"))] {
        let seen = properties.visible(&narrow.expose, Some(&needs), |_, _, _| "sealed".to_owned());
        assert_ne!(seen[name], value, "a credential is shown");
    }
    check_text(&narrow, &needs);
}

fn resolve(properties: &Properties, needs: &Needs) -> Policy {
    let forbidden: Vec<Endpoint> = FORBIDDEN.iter().filter_map(|(what, url)| Endpoint::from_url(what, url)).collect();
    Policy::resolve(&FILE, properties, Some(needs), &forbidden, false)
        .unwrap_or_else(|problems| panic!("a guest's needs make the operator's file invalid: {problems:#?}"))
}

fn allows(policy: &Policy, method: &str, destination: &Destination) -> Option<Arc<Grant>> {
    match policy.judge(destination, method, &Message { headers: &[], body: b"" }) {
        Verdict::Allowed { grant, .. } => Some(grant),
        Verdict::Denied(denial) => {
            assert_printable(&denial.message);
            assert_printable(denial.hint.as_deref().unwrap_or_default());
            None
        }
    }
}

fn is_within(slot: &Slot, wide: &Slot) -> bool {
    slot.method == wide.method
        && slot.place == wide.place
        && wide.path.covers(&slot.path)
        && slot.takes.iter().all(|name| wide.takes.contains(name))
}

/// Asserts that every suggested grant is valid, and that all texts are printable.
fn check_text(policy: &Policy, needs: &Needs) {
    let missing = policy.compare_needs(needs);
    for need in &missing.http {
        [&need.id, &need.to, &need.why].into_iter().chain(&need.missing).for_each(|text| assert_printable(text));
        if let Some(line) = &need.grant_line {
            assert_printable(line);
            let grant: Value = serde_json::from_str(line).expect("a suggested grant is JSON");
            let file = json!({"version": 1, "http": [grant]}).to_string();
            assert!(PolicyFile::parse(&file).is_ok(), "a suggested grant is refused: {line}");
        }
        need.slot_lines.iter().chain(&need.show_lines).for_each(|line| assert_printable(line));
    }
    missing.hidden.iter().chain(&missing.expose_line).for_each(|text| assert_printable(text));
}

fn assert_printable(text: &str) {
    assert!(is_printable(text), "{text:?}");
}
