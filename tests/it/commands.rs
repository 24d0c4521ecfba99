//! The commands for operators and authors: what they print, and their exit codes.

use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output};
use tests::process::{GUARD, run};
use tests::servers::{Answer, Server, grant, with};
use tests::{Job, dist, job, probe};

fn tool(arguments: &[&str]) -> Output {
    Command::new(dist::tool()).args(arguments).env_clear().current_dir("/").output().unwrap()
}

/// Checks the exit status and that the output contains all texts. Returns the output.
#[track_caller]
fn check_output(output: &Output, succeeds: bool, texts: &[&str]) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.success(), succeeds, "{text}");
    for expected in texts {
        assert!(text.contains(expected), "no `{expected}` in: {text}");
    }
    text
}

fn config(job: &Job) -> String {
    job.config_file().to_str().unwrap().to_owned()
}

#[test]
fn check_accepts_a_valid_job_and_warns_about_risky_settings() {
    let job = Job::default().configure(|config| {
        config["allow_local"] = json!(true);
        config["agent"] = json!({"mbus": "nats://u:a-password@10.0.0.1:4222"});
    });
    let text = check_output(
        &tool(&["check", "--config", &config(&job)]),
        true,
        &["0 problems", "warning: `allow_local`", "warning: `agent.mbus` holds a password"],
    );
    assert!(!text.contains("a-password"), "{text}");
}

#[test]
fn check_lists_every_problem_of_every_file() {
    let job = Job::default()
        .policy(
            json!({"version": 1, "http": [{"id": "a", "to": "https://*", "methods": [], "paths": ["x"]}], "htp": 1}),
        )
        .configure(|config| {
            config["limits"] = json!({"memory_mib": 0});
            config["logg"] = json!(1);
            config["guest"]["sha256"] = json!("abc");
        });
    let expected =
        ["memory_mib", "`logg`", "`guest.sha256`", "`http[0].to`", "`http[0].methods`", "`http[0].paths[0]`", "`htp`"];
    check_output(&tool(&["check", "--config", &config(&job)]), false, &expected);
}

/// Properties of a cpi-config come with the Director's requests. `check` and `call` take them from a file or stdin.
#[test]
fn properties_of_a_cpi_config_can_be_passed_to_commands() {
    let policy = json!({"version": 1, "expose": ["where"], "http": [grant("a", "${where}")]});
    let job = Job::default().policy(policy);
    let job_config = config(&job);
    let check = ["check", "--config", &job_config];
    check_output(&tool(&check), false, &["property `where`"]);
    let file = job.path("context.json");
    fs::write(&file, r#"{"where": "https://api.cloud.test"}"#).unwrap();
    let context = ["--context", file.to_str().unwrap()];
    check_output(&tool(&[&check[..], &context].concat()), true, &["policy.json: 1 grant"]);

    let script = probe::cid(&json!([{"op": "config"}]));
    let call = ["call", "has_vm", &script, "--config", &job_config, "--context", "-"];
    let finished = run(Command::new(dist::tool()).args(call), &fs::read(&file).unwrap(), GUARD);
    let text = String::from_utf8_lossy(&finished.stdout);
    assert!(text.contains("https://api.cloud.test"), "{text}{}", String::from_utf8_lossy(&finished.stderr));

    fs::write(&file, r#"{"where": hunter2}"#).unwrap();
    let refused =
        check_output(&tool(&[&check[..], &context].concat()), false, &["context.json: expected a JSON object"]);
    assert!(!refused.contains("hunter2"), "{refused}");
}

#[test]
fn check_opens_the_certificates_that_the_policy_names() {
    let tls = json!({"tls": {"ca": "nowhere.pem"}});
    let job = Job::default().policy(json!({"version": 1, "http": [with(grant("a", "https://api.cloud.test"), tls)]}));
    check_output(&tool(&["check", "--config", &config(&job)]), false, &["grant `a`", "nowhere.pem", "\n1 problem, "]);
}

#[test]
fn check_warns_about_a_certificate_that_nothing_trusts() {
    let pem = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n";
    for (tls, warned) in [(json!({}), true), (json!({"tls": {"ca": "${options.ca}"}}), false)] {
        let job = Job::default()
            .properties(json!({"options": {"ca": pem}}))
            .policy(json!({"version": 1, "http": [with(grant("a", "https://api.cloud.test"), tls)]}));
        let text = check_output(&tool(&["check", "--config", &config(&job)]), true, &["0 problems"]);
        let said = "no grant or login trusts the certificate in the property `options.ca`";
        assert_eq!(text.contains(said), warned, "{text}");
    }
}

#[test]
fn check_refuses_a_guest_that_differs_from_its_pin() {
    let job = Job::default().configure(|config| config["guest"]["sha256"] = json!("0".repeat(64)));
    check_output(&tool(&["check", "--config", &config(&job)]), false, &["change the pin"]);
}

#[test]
fn inspect_prints_the_pin_the_needs_and_the_grants() {
    let probe = dist::probe();
    let probe = probe.to_str().unwrap();
    let text =
        check_output(&tool(&["inspect", probe]), true, &["probe 0.1.0", "\"sha256\": \"", "create_vm", "needs     {"]);
    assert!(!text.contains("granted"), "{text}");
    let job = Job::default().policy(json!({"version": 1, "http": [grant("mine", "https://api.cloud.test")]}));
    check_output(&tool(&["inspect", probe, "--config", &config(&job)]), true, &["granted   any (*): by mine"]);
    let output = tool(&["inspect", probe, "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["name"], found["methods"].as_array().unwrap().len()), (&json!("probe"), 21));
}

/// The lines that `check` and `inspect` print for a need that nothing grants make it granted.
#[test]
fn a_need_that_nothing_grants_is_a_problem_until_its_line_is_added() {
    let needs = json!({"version": 1, "expose": ["url"], "http": [
        {"id": "api", "to": "${url}", "methods": ["POST"], "paths": ["/v1/*"], "operations": {"in": "json", "allow": ["grow"]}},
        {"id": "extra", "to": "https://extra.test", "methods": ["GET"], "paths": ["/"], "optional": true}]});
    let job = Job::default()
        .guest_bytes(&tests::cloud::probe_with_needs(&needs))
        .properties(json!({"url": "https://api.test/base"}));
    let guest = job.path("guest.wasm");
    let codes = || {
        let check = tool(&["check", "--config", &config(&job)]);
        let inspect = tool(&["inspect", guest.to_str().unwrap(), "--config", &config(&job)]);
        let text = format!("{}{}", String::from_utf8_lossy(&check.stdout), String::from_utf8_lossy(&inspect.stdout));
        (check.status.code(), inspect.status.code(), text)
    };
    let write = |policy: &Value| job::write(&job.policy_file(), policy.to_string().as_bytes());
    write(&json!({"version": 1}));
    let (check, inspect, text) = codes();
    assert_eq!((check, inspect), (Some(1), Some(4)), "{text}");
    assert!(
        text.contains("no grant covers the guest's need `api`") && text.contains("`expose` does not list `url`"),
        "{text}"
    );
    assert!(!text.contains("need `extra`"), "{text}");
    let (_, line) = text.split_once("add to `http`: ").unwrap();
    let grant: Value = serde_json::Deserializer::from_str(line).into_iter().next().unwrap().unwrap();
    write(&json!({"version": 1, "expose": ["url"], "http": [grant]}));
    let (check, inspect, text) = codes();
    assert_eq!((check, inspect), (Some(0), Some(0)), "{text}");
    // A grant that lists another operation does not serve the need.
    let mut other = grant;
    other["operations"]["allow"] = json!(["shrink"]);
    write(&json!({"version": 1, "expose": ["url"], "http": [other]}));
    let (check, inspect, text) = codes();
    assert_eq!((check, inspect), (Some(1), Some(4)), "{text}");
}

#[test]
fn a_login_that_the_guest_does_not_declare_is_a_problem() {
    let login = json!({"to": "https://id.test", "path": "/t", "token": "json:/t", "send": {"header": "X-T"}});
    let grant = with(grant("a", "https://api.test"), json!({"auth": {"login": "main"}}));
    for (logins, code) in [(json!(["main"]), Some(0)), (json!([]), Some(1))] {
        let needs =
            json!({"version": 1, "logins": logins, "http": [{"id": "a", "to": "*", "methods": "*", "paths": "*"}]});
        let job = Job::default()
            .guest_bytes(&tests::cloud::probe_with_needs(&needs))
            .policy(json!({"version": 1, "logins": {"main": login}, "http": [grant]}));
        let output = tool(&["check", "--config", &config(&job)]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), code, "{text}");
        assert_eq!(text.contains("adds `main` to `logins` in needs.json"), code == Some(1), "{text}");
    }
}

#[test]
fn inspect_refuses_a_file_that_is_not_a_component() {
    let directory = Job::default();
    let file = directory.path("not.wasm");
    job::write(&file, b"(component)");
    check_output(&tool(&["inspect", file.to_str().unwrap()]), false, &["config: guest", "is WebAssembly text"]);
}

#[test]
fn call_shows_requests_host_calls_result_and_usage() {
    let server = Server::answering(Answer::ok("hello"));
    let job = tests::cloud::job(json!([server.grant("mine")]));
    let script = json!({"probe": [{"op": "http", "url": server.url("/x")}, {"op": "random", "count": 5}]});
    check_output(
        &tool(&["call", "create_disk", "10", &script.to_string(), "--config", &config(&job)]),
        true,
        &[
            "http     GET http://127.0.0.1",
            " 200 (mine;",
            "host     random.bytes (5 B",
            "result   \"probe:",
            "(cpu_seconds)",
        ],
    );
}

#[test]
fn explain_prints_meaning_and_remedy_of_a_code() {
    let parts = ["header-override (HTTP requests)\n", "\nmeaning: The request sets a header", "\nremedy:  "];
    check_output(&tool(&["explain", "header-override"]), true, &parts);
    check_output(&tool(&["explain", "[header-override]"]), true, &parts);
    check_output(&tool(&["explain", "header-overide"]), false, &["is neither a code nor a limit", "header-override"]);
    check_output(&tool(&["explain"]), true, &["HTTP requests\n", "\n  header-override  ", "\n  grant-host "]);
}

#[test]
fn call_shows_the_codes_of_refusals() {
    let job = Job::default();
    let script = json!({"probe": [{"op": "http", "url": "https://a.test/"}, {"op": "registry.get", "id": "vm-2"}]});
    let output = tool(&["call", "create_disk", "10", &script.to_string(), "--config", &config(&job)]);
    check_output(
        &output,
        true,
        &[" denied(undeclared) [grant-host] (", "host     registry.get denied [registry-ids] ("],
    );
    let output = tool(&["call", "has_vm", "vm-1", "vm-2", "--config", &config(&job)]);
    check_output(&output, false, &["request: `has_vm` got 2 arguments", " [arity]\n"]);
}

#[test]
fn call_escapes_control_characters_in_errors() {
    let job = Job::default();
    let script = json!({"probe": [{"op": "error", "kind": "cloud", "message": "no\u{1b}[2Jroom"}]});
    let output = tool(&["call", "create_disk", "10", &script.to_string(), "--config", &config(&job)]);
    check_output(&output, false, &["error    Bosh::Clouds::CloudError: no\\u{1b}[2Jroom"]);
}

#[test]
fn call_refuses_unknown_and_unimplemented_methods() {
    let job = Job::default();
    check_output(
        &tool(&["call", "create_universe", "--config", &config(&job)]),
        false,
        &["request: there is no CPI method"],
    );
    let job = Job::new().guest_bytes(&tests::hostile::guest("small"));
    let text = check_output(
        &tool(&["call", "delete_vm", "vm-1", "--config", &config(&job)]),
        false,
        &["error    Bosh::Clouds::NotImplemented: guest: hostile 1.0.0 does not implement delete_vm"],
    );
    assert!(!text.contains("guest: guest:"), "{text}");
}
