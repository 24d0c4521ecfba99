//! Policies with many grants, and policies, presets and configs that change between
//! two calls: the next call uses the current files.

use serde_json::{Value, json};
use std::fs;
use tests::Job;
use tests::cloud::{answered, denied, get, outcome, with_policy};
use tests::job::{set_mode, write};
use tests::servers::{Answer, Server, grant, with};

/// A job whose policy has these grants between many others.
fn with_many_grants(grants: &[Value]) -> Job {
    let other = |at: usize| grant(&format!("other-{at}"), &format!("https://api-{at}.example.org"));
    let all: Vec<Value> = (0..20).map(other).chain(grants.iter().cloned()).chain((20..40).map(other)).collect();
    with_policy(json!({"http": all}))
}

fn edit(job: &Job, from: &str, to: &str) {
    let text = fs::read_to_string(job.policy_file()).unwrap();
    assert!(text.contains(from), "{from}");
    write(&job.policy_file(), text.replace(from, to).as_bytes());
}

/// Changes a key of the config. `Job::configure` would write the policy again as well.
fn reconfigure(job: &Job, key: &str, value: Value) {
    let mut config: Value = serde_json::from_slice(&fs::read(job.config_file()).unwrap()).unwrap();
    config[key] = value;
    write(&job.config_file(), config.to_string().as_bytes());
}

#[test]
fn a_grant_between_many_others_allows_the_same_requests_in_every_call() {
    let server = Server::answering(Answer::ok(""));
    let job = with_many_grants(&[with(server.grant("api"), json!({"methods": ["GET"], "paths": ["/v1/**"]}))]);
    for hardening in ["off", "off", "required"] {
        reconfigure(&job, "hardening", json!(hardening));
        answered(&outcome(&job, get(&server.url("/v1/x"))), 200);
        denied(&outcome(&job, get(&server.url("/v2/x"))), "path", &["grants allow other paths: `api` /v1/**"]);
        denied(&outcome(&job, get("https://api-7.example.com/")), "host", &["no grant names the host"]);
    }
}

#[test]
fn a_changed_policy_applies_to_the_next_call() {
    let server = Server::answering(Answer::ok(""));
    let job = with_many_grants(&[with(server.grant("api"), json!({"paths": ["/v1/**"]}))]);
    let (old, new) = (get(&server.url("/v1/x")), get(&server.url("/v2/x")));
    for _ in 0..2 {
        answered(&outcome(&job, old.clone()), 200);
        denied(&outcome(&job, new.clone()), "path", &[]);
    }
    // The file is changed in place, and its length stays the same.
    edit(&job, "/v1/**", "/v2/**");
    for _ in 0..2 {
        denied(&outcome(&job, old.clone()), "path", &[]);
        answered(&outcome(&job, new.clone()), 200);
    }
    edit(&job, "\"id\":\"other-3\"", "\"id\":\"other-4\"");
    job.call("has_vm", json!(["vm"])).run().fails(tests::CPI_ERROR, &["`http[4].id`", "the id of an earlier grant"]);
    edit(&job, "https://api-9.example.org", "https://api-9.example.org/");
    job.call("has_vm", json!(["vm"])).run().fails(tests::CPI_ERROR, &["`http[4].id`", "and 1 more"]);
}

#[test]
fn a_grant_for_a_bosh_endpoint_is_refused_after_the_config_changes() {
    let server = Server::answering(Answer::ok(""));
    let job = with_many_grants(&[server.grant("api")]);
    let request = get(&server.url("/x"));
    for _ in 0..2 {
        answered(&outcome(&job, request.clone()), 200);
    }
    reconfigure(&job, "agent", json!({"mbus": format!("nats://127.0.0.1:{}", server.port())}));
    job.call("has_vm", json!(["vm"])).run().fails(tests::CPI_ERROR, &["`http[20].to`", "which no guest may reach"]);
}

#[test]
fn grants_that_use_properties_are_checked_in_every_call() {
    let server = Server::answering(Answer::ok(""));
    let by_property = with(server.grant("api"), json!({"to": "${endpoint}"}));
    let job = with_many_grants(&[by_property]).properties(json!({"endpoint": server.origin()}));
    for _ in 0..2 {
        answered(&outcome(&job, get(&server.url("/x"))), 200);
    }
    let response = job.call("has_vm", json!(["vm"])).context("endpoint", json!("nowhere")).run();
    response.fails(tests::CPI_ERROR, &["`http[20].to`"]);
}

#[test]
fn a_changed_preset_is_checked_together_with_unchanged_grants() {
    let server = Server::answering(Answer::ok(""));
    let job = with_many_grants(&[with(server.grant("api"), json!({"paths": ["/v1/**"]}))]);
    let preset =
        |id: &str| json!({"version": 1, "http": [with(server.grant(id), json!({"paths": ["/**"]}))]}).to_string();
    let put = |id: &str| {
        write(&job.path("config/preset.json"), preset(id).as_bytes());
        set_mode(&job.path("config/preset.json"), 0o600);
    };
    put("wide");
    edit(&job, "{\"http\":", "{\"presets\":[{\"file\":\"preset.json\",\"addresses\":[\"127.0.0.0/8\"]}],\"http\":");
    for _ in 0..2 {
        // The grant of the policy allows the first request, that of the preset the second one.
        answered(&outcome(&job, get(&server.url("/v1/x"))), 200);
        answered(&outcome(&job, get(&server.url("/v2/x"))), 200);
    }
    put("api");
    let response = job.call("has_vm", json!(["vm"])).run();
    response.fails(tests::CPI_ERROR, &["`presets[0].http[0].id`", "the id of an earlier grant"]);
}
