//! Secrets: what a guest sees of them, where the runtime sends them, and that they appear
//! nowhere else.

mod answers;
mod auth;
mod captures;
mod kept_tokens;
mod layers;
mod logins;
mod slots;
mod tripwire;

use serde_json::{Value, json};
use tests::cloud::{create_vm, outcome, probe_with_needs, vm_outcomes, with_policy};
use tests::{CPI_ERROR, Job};

/// Returns the properties as the guest sees them.
fn visible(job: &Job) -> Value {
    outcome(job, json!({"op": "config"}))["ok"].clone()
}

fn properties() -> Value {
    json!({
        "region": "here", "empty": "", "none": null, "count": 7, "on": true, "zones": ["z1", "z2"],
        "auth": {"user": "admin", "password": "hunter2hunter2", "url": "https://u:p@cloud.test", "deep": {"name": "n"}},
        "api_key": "k-e-y", "url": "https://cloud.test",
    })
}

#[test]
fn properties_are_sealed_unless_they_are_exposed() {
    let job = with_policy(json!({"http": []})).properties(properties());
    let sealed = json!({
        "region": "<sealed:region>", "empty": "<sealed:empty>", "none": null, "count": "<sealed:count>", "on": "<sealed:on>",
        "zones": ["<sealed:zones.0>", "<sealed:zones.1>"],
        "auth": {"user": "<sealed:auth.user>", "password": "<sealed:auth.password>", "url": "<sealed:auth.url>", "deep": {"name": "<sealed:auth.deep.name>"}},
        "api_key": "<sealed:api_key>", "url": "<sealed:url>",
    });
    assert_eq!(visible(&job), sealed);
    let exposed = |names: Value| visible(&with_policy(json!({"http": [], "expose": names})).properties(properties()));
    let over = |changes: &[(&str, Value)]| {
        let mut expected = sealed.clone();
        changes.iter().for_each(|(pointer, value)| *expected.pointer_mut(pointer).unwrap() = value.clone());
        expected
    };
    assert_eq!(
        exposed(json!(["region", "count", "on", "zones", "url", "not.there"])),
        over(&[
            ("/region", json!("here")),
            ("/count", json!(7)),
            ("/on", json!(true)),
            ("/zones", json!(["z1", "z2"])),
            ("/url", json!("https://cloud.test"))
        ])
    );
    // If a parent is exposed, properties that look like credentials must still be named themselves.
    assert_eq!(exposed(json!(["auth"])), over(&[("/auth/user", json!("admin")), ("/auth/deep/name", json!("n"))]));
    assert_eq!(
        exposed(json!(["auth.password", "api_key"])),
        over(&[("/auth/password", json!("hunter2hunter2")), ("/api_key", json!("k-e-y"))])
    );
    assert_eq!(exposed(json!("declared")), sealed);
}

#[test]
fn expose_declared_exposes_the_declared_properties_except_credentials() {
    let needs = json!({"version": 1, "expose": ["region", "auth", "api_key", "url"]});
    let job = with_policy(json!({"http": [], "expose": "declared"}))
        .properties(properties())
        .guest_bytes(&probe_with_needs(&needs))
        .configure(|config| config["cache"] = json!("../cache"));
    let seen = visible(&job);
    assert_eq!((&seen["region"], &seen["url"]), (&json!("here"), &json!("https://cloud.test")));
    assert_eq!((&seen["auth"]["user"], &seen["auth"]["deep"]["name"]), (&json!("admin"), &json!("n")));
    for pointer in ["/auth/password", "/auth/url", "/api_key", "/zones/0"] {
        assert!(seen.pointer(pointer).unwrap().as_str().unwrap().starts_with("<sealed:"), "{pointer}: {seen}");
    }
    let listed = job.policy(json!({"version": 1, "http": [], "expose": ["zones"]}));
    assert_eq!(
        (&visible(&listed)["region"], &visible(&listed)["zones"]),
        (&json!("<sealed:region>"), &json!(["z1", "z2"]))
    );
}

#[test]
fn the_context_overrides_properties_and_is_sealed_like_them() {
    let job = with_policy(json!({"http": [], "expose": ["region", "auth.user"]})).properties(properties());
    let script = tests::probe::cid(&json!([{"op": "config"}, {"op": "call"}]));
    let call = job
        .call("has_vm", json!([script]))
        .context("region", json!("there"))
        .context("new", json!({"token": "hunter2hunter2"}));
    let response = call.context("auth", json!({"user": "other"})).run();
    let outcomes = tests::probe::outcomes_in(response.message());
    let seen = &outcomes[0]["ok"];
    assert_eq!((&seen["region"], &seen["auth"]), (&json!("there"), &json!({"user": "other"})));
    assert_eq!((&seen["new"], &seen["url"]), (&json!({"token": "<sealed:new.token>"}), &json!("<sealed:url>")));
    for key in ["director_uuid", "request_id", "vm"] {
        assert_eq!(seen.get(key), None);
    }
    assert_eq!(outcomes[1]["ok"]["request_id"], "cpi-123456");
}

#[test]
fn a_guest_sees_only_the_parts_of_env_that_the_director_logs() {
    let job = with_policy(json!({"http": []}));
    let script = json!([{"op": "log", "message": "env: {{args.env|json}}"}]);
    let response = create_vm(&job, &script).run();
    vm_outcomes(&response);
    let line = response.stderr.lines().find(|line| line.contains("env: ")).unwrap();
    let (_, shown) = line.split_once("env: ").unwrap();
    let shown: Value = serde_json::from_str(&serde_json::from_str::<String>(shown).unwrap()).unwrap();
    assert_eq!(shown, json!({"bosh": {"group": "a-group", "groups": ["a-group", "another"], "tags": {"team": "us"}}}));
}

#[test]
fn a_policy_that_contains_credentials_is_refused() {
    for (auth, key) in [
        (json!({"bearer": "hunter2hunter2"}), "auth.bearer"),
        (json!({"basic": {"user": "u", "password": "hunter2hunter2"}}), "auth.basic.password"),
        (json!({"header": {"name": "X-Key", "value": "hunter2hunter2"}}), "auth.header.value"),
    ] {
        let grant = json!({"id": "a", "to": "https://a.test", "methods": ["GET"], "paths": ["/**"], "auth": auth});
        let response = with_policy(json!({"http": [grant]})).script(json!([])).run();
        response.fails(CPI_ERROR, &["policy.json", key, "put the value into the CPI's properties"]);
        assert!(!response.json.to_string().contains("hunter2"));
    }
}

#[test]
fn a_grant_that_sends_secrets_over_http_or_to_a_host_pattern_is_refused() {
    let auth = json!({"bearer": "${password}"});
    let slot = json!([{"method": "POST", "path": "/vms", "place": "body"}]);
    for (to, keys, expected) in [
        ("http://cloud.test", json!({"auth": auth}), "in the clear"),
        ("http://cloud.test", json!({"slots": slot}), "in the clear"),
        ("https://*.cloud.test", json!({"auth": auth}), "which go only to exact hosts"),
        ("https://*.cloud.test", json!({"slots": slot}), "which go only to exact hosts"),
    ] {
        let grant = tests::servers::with(json!({"id": "a", "to": to, "methods": ["POST"], "paths": ["/**"]}), keys);
        let response = with_policy(json!({"http": [grant]})).script(json!([])).run();
        response.fails(CPI_ERROR, &["policy.json", "`http[0].to`", expected]);
    }
}
