//! The audit log: one line for each use of a capability and for each denial. The tests
//! check every line that they read against the schema (`tests::audit`).

mod calls;
mod concurrency;
mod files;
mod http_trace;

use serde_json::{Value, json};
use tests::audit::{about, audited, call_with_uses, last_call, lines, of_kind};
use tests::cloud::{answered, call, create_vm, get, outcomes, post, with_policy};
use tests::job::write;
use tests::registry_server::RegistryServer;
use tests::servers::{Answer, Server, with};
use tests::{CLOUD_ERROR, Job, dist, hostile};

const SECRET: &str = "correct-horse-battery-staple";

/// Returns a job whose only grant is for paths below `/v1`.
fn job(server: &Server) -> Job {
    let grant = with(server.grant("api"), json!({"paths": ["/v1/**"], "methods": ["GET", "POST"]}));
    audited(with_policy(json!({"http": [grant]})).properties(json!({"password": SECRET})))
}

#[test]
fn no_audit_file_is_written_without_the_audit_section() {
    let job = Job::default();
    job.call("info", json!([])).run().result();
    assert!(!tests::audit::path(&job).exists());
}

#[test]
fn a_request_is_one_line_without_query_body_or_header_value() {
    let server = Server::answering(Answer::json(201, &json!({"answer": "seen-in-no-log"})).header("X-A", "unseen-too"));
    let job = job(&server);
    let request = with(
        post(&server.url("/v1/vms?q=unseen-query"), &json!({"name": "unseen-body"})),
        json!({
            "headers": {"Content-Type": "application/json", "X-Mine": "unseen-value"},
        }),
    );
    answered(&outcomes(&job, &json!([request]))[0], 201);
    let all = lines(&job);
    assert_eq!(all.len(), 2, "{all:?}");
    let line = &all[0];
    for (name, value) in [
        ("v", json!(1)),
        ("kind", json!("use")),
        ("method", json!("has_vm")),
        ("request_id", json!("cpi-123456")),
        ("director_uuid", json!("5f0e7d9a-6f0c-4f9d-9d53-0c9a5c0b7a11")),
        ("guest_name", json!("probe")),
        ("guest_sha256", json!(dist::probe_sha256())),
        ("capability", json!("http")),
        ("operation", json!("POST")),
        ("target", json!(server.url("/v1/vms"))),
        ("grant", json!("api")),
        ("address", json!("127.0.0.1")),
        ("status", json!(201)),
        ("sent", json!(true)),
        ("sent_bytes", json!(r#"{"name":"unseen-body"}"#.len())),
        ("received_bytes", json!(r#"{"answer":"seen-in-no-log"}"#.len())),
    ] {
        assert_eq!(line[name], value, "{name} in {line}");
    }
    assert_eq!(line["call"], all[1]["call"]);
    let text = std::fs::read_to_string(tests::audit::path(&job)).unwrap();
    assert!(!text.contains("unseen") && !text.contains("seen-in-no-log"), "{text}");
}

#[test]
fn a_denial_line_has_the_reason_that_the_guest_received() {
    let server = Server::answering(Answer::ok(""));
    let job = job(&server);
    let url = |path: &str| server.url(path);
    let requests = json!([
        get("file:///etc/passwd"),
        get(&url("/v1/x").replace("http:", "https:")),
        get("http://elsewhere.test/v1/x"),
        get("http://127.0.0.1:1/v1/x"),
        {"op": "http", "method": "DELETE", "url": url("/v1/x")},
        get(&url("/v2/x?a=unseen")),
        {"op": "http", "url": url("/v1/x"), "headers": {"Authorization": "unseen"}},
        {"op": "config"},
        {"op": "http", "url": url("/v1/{{7.ok.password}}")},
        {"op": "http", "url": "not a URL"},
        {"op": "http", "url": url("/v1/x"), "method": "get"},
        get(&url(&format!("/v1/{}", "long".repeat(3000)))),
    ]);
    let outcomes = outcomes(&job, &requests);
    let lines = of_kind(&job, "denied");
    let denials: Vec<&Value> = outcomes.iter().filter(|outcome| outcome["op"] == "http").collect();
    assert_eq!((lines.len(), denials.len()), (11, 11));
    let reasons = ["scheme", "scheme", "host", "port", "method", "path", "header", "slot"];
    for (index, (line, outcome)) in lines.iter().zip(denials).enumerate() {
        let error = &outcome["error"];
        let reason = match (error["kind"].as_str(), error["reason"].as_str()) {
            (Some("denied"), Some(reason)) => reason.to_owned(),
            (Some("limit"), _) => format!("limit({})", error["limit"].as_str().unwrap()),
            (Some(kind), _) => kind.to_owned(),
            _ => panic!("{outcome}"),
        };
        assert_eq!((&line["reason"], &line["sent"]), (&json!(reason), &json!(false)), "{line} {outcome}");
        assert_eq!(reasons.get(index).copied().unwrap_or(&reason), reason);
    }
    assert_eq!(lines[5]["target"], url("/v2/x"));
    assert_eq!(lines[7]["target"], url("/v1/<sealed:password>"));
    assert_eq!(lines[7]["grant"], "api");
    assert!(!std::fs::read_to_string(tests::audit::path(&job)).unwrap().contains("unseen"));
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_refused_address_is_named_in_the_denial_line() {
    let server = Server::answering(Answer::ok(""));
    let grant = with(server.grant("api"), json!({"addresses": ["10.0.0.0/8"]}));
    let job = audited(with_policy(json!({"http": [grant]})));
    assert_eq!(outcomes(&job, &json!([get(&server.url("/"))]))[0]["error"]["reason"], "address");
    let line = &of_kind(&job, "denied")[0];
    assert_eq!(
        (&line["reason"], &line["address"], &line["grant"]),
        (&json!("address"), &json!("127.0.0.1"), &json!("api"))
    );
}

#[test]
fn a_leak_line_names_the_secret() {
    let server = Server::answering(Answer::ok(SECRET));
    let job = job(&server);
    let twice = json!([get(&server.url("/v1/a")), get(&server.url("/v1/b")), get(&server.url("/v1/c"))]);
    call(&job, &twice).fails(CLOUD_ERROR, &["policy: the response to GET", "held the credential `password`"]);
    let leaks = of_kind(&job, "leak");
    assert_eq!(leaks.len(), 2);
    for leak in &leaks {
        assert_eq!((&leak["secret"], &leak["sent"]), (&json!("password"), &json!(true)), "{leak}");
    }
    let end = last_call(&job);
    assert_eq!((&end["outcome"], &end["who"], &end["error"]), (&json!("error"), &json!("policy"), &json!(CLOUD_ERROR)));
    assert_eq!(lines(&job).len(), 3, "the guest is stopped before its third request: {:?}", lines(&job));

    let job = self::job(&server);
    job.script(json!([{"op": "result", "json": format!("disk-{SECRET}")}])).run().fails(CLOUD_ERROR, &["withheld"]);
    let leaks = about(&job, "result");
    assert_eq!((leaks.len(), &leaks[0]["secret"]), (1, &json!("password")));
}

#[test]
fn logins_and_sessions_are_audited() {
    let server = Server::start(|seen| match seen.target() {
        "/tokens" => Answer::json(200, &json!({"token": "a-token-of-the-cloud", "catalog": "shown"})),
        _ => Answer::ok("in"),
    });
    let login = json!({
        "to": server.origin(), "path": "/tokens", "addresses": ["127.0.0.0/8"], "plain_http": true, "token": "json:/token",
        "body": {"password": "${password}"}, "send": {"header": "X-Auth-Token"}, "show": {"catalog": "json:/catalog"},
    });
    let grant = with(server.grant("api"), json!({"auth": {"login": "main"}, "plain_http": true}));
    let job = audited(
        with_policy(json!({"logins": {"main": login}, "http": [grant]})).properties(json!({"password": SECRET})),
    );
    let script = json!([get(&server.url("/v1")), {"op": "session", "name": "main"}, {"op": "session", "name": "other\u{202e}\n"}]);
    answered(&outcomes(&job, &script)[0], 200);
    let login = about(&job, "login");
    assert_eq!(login.len(), 1);
    assert_eq!((&login[0]["login"], &login[0]["status"]), (&json!("main"), &json!(200)));
    assert_eq!((&login[0]["target"], &login[0]["address"]), (&json!(server.url("/tokens")), &json!("127.0.0.1")));
    // Rounded up: the exact lengths would measure the password and the token.
    assert_eq!((&login[0]["sent_bytes"], &login[0]["received_bytes"]), (&json!(1024), &json!(1024)));
    let sessions = about(&job, "session");
    assert_eq!((sessions.len(), &sessions[0]["kind"], &sessions[0]["login"]), (2, &json!("use"), &json!("main")));
    assert_eq!((&sessions[1]["kind"], &sessions[1]["reason"]), (&json!("denied"), &json!("undeclared")));
    assert_eq!(sessions[1]["login"], "other\\u{202e}\\n");
    let text = std::fs::read_to_string(tests::audit::path(&job)).unwrap();
    assert!(!text.contains(SECRET) && !text.contains("a-token"), "{text}");
}

#[test]
fn agent_and_registry_use_is_audited_and_sealed_values_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let registry = RegistryServer::start(dir.path());
    let server = Server::answering(Answer::json(200, &json!({"id": "vm-1"})));
    let slot = json!([{"method": "POST", "path": "/vms", "place": "json:/user_data"}]);
    let grant = with(server.grant("cloud"), json!({"slots": slot, "plain_http": true}));
    let job =
        audited(with_policy(json!({"http": [grant]}))).configure(|config| config["registry"] = registry.section());
    let script = json!([
        {"op": "agent.bootstrap", "vm_name": "the-name", "encodings": ["base64"]},
        post(&server.url("/vms"), &json!({"user_data": "{{0.ok}}"})),
        {"op": "agent.created", "vm": "vm-1", "key": "vm-1"},
        {"op": "registry.get", "id": "vm-1"},
        {"op": "registry.get", "id": "vm-2"},
        {"op": "image.size"},
        {"op": "result", "json": "vm-1"},
    ]);
    let response = create_vm(&job, &script).stemcell_api_version(1).run();
    assert_eq!(response.result()[0], "vm-1");
    assert_eq!(about(&job, "http")[0]["seals"], json!(["agent"]));
    let audited_fields: Vec<Value> = ["agent", "registry", "image"]
        .iter()
        .flat_map(|capability| about(&job, capability))
        .map(|line| json!([line["kind"], line["capability"], line["operation"], line["target"], line["reason"]]))
        .collect();
    let expected = [
        json!(["use", "agent", "bootstrap", "the-name", null]),
        json!(["use", "agent", "created", "vm-1", null]),
        json!(["use", "registry", "get", "vm-1", null]),
        json!(["denied", "registry", "get", "vm-2", "denied"]),
        json!(["denied", "image", "size", null, "denied"]),
    ];
    assert_eq!(audited_fields, expected);
}

#[test]
fn image_use_is_audited_without_the_path_of_the_image() {
    let server = Server::answering(Answer::ok(""));
    let job = job(&server);
    write(&job.path("an-image"), &[7; 3000]);
    let script = json!([
        {"op": "image.size"},
        {"op": "image.read", "offset": 0, "length": 100},
        {"op": "image.read_member", "name": "no-such-member", "length": 10},
        {"op": "http", "method": "POST", "url": server.url("/v1/images"), "image": true},
    ]);
    job.call("create_stemcell", json!([job.path("an-image"), {"probe": script}])).run().result();
    let images = about(&job, "image");
    let audited_fields: Vec<Value> =
        images.iter().map(|line| json!([line["operation"], line["bytes"], line["target"]])).collect();
    assert_eq!(
        audited_fields,
        [json!(["size", 0, null]), json!(["read", 100, null]), json!(["read-member", 0, "no-such-member"])]
    );
    assert_eq!((&images[2]["kind"], &images[2]["reason"]), (&json!("denied"), &json!("invalid")));
    assert_eq!(about(&job, "http")[0]["sent_bytes"], 3000);
    assert!(!std::fs::read_to_string(tests::audit::path(&job)).unwrap().contains("an-image"));
}

#[test]
fn host_calls_without_a_target_are_counted_in_the_call_line() {
    let job = audited(Job::default());
    let script = json!([
        {"op": "log", "message": "a", "repeat": 3},
        {"op": "clock.now"}, {"op": "clock.monotonic"}, {"op": "clock.sleep", "ms": 1},
        {"op": "random", "count": 8, "repeat": 2},
        {"op": "config"}, {"op": "call"},
    ]);
    job.probe(script);
    let end = last_call(&job);
    assert_eq!(lines(&job).len(), 1, "{:?}", lines(&job));
    assert_eq!((&end["log_calls"], &end["clock_calls"]), (&json!(3), &json!(3)), "{end}");
    assert_eq!((&end["random_calls"], &end["config_calls"]), (&json!(2), &json!(2)), "{end}");
    assert!(end["host_calls"].as_u64() >= Some(10) && end["memory_bytes"].as_u64() > Some(65_536), "{end}");
    assert_eq!((&end["outcome"], &end["requests"]), (&json!("ok"), &json!(0)));
}

#[test]
fn a_guest_cannot_forge_a_line_or_a_field() {
    let job = audited(with_policy(json!({"http": []})));
    let forged = "x\"}\n{\"v\":1,\"kind\":\"call\",\"outcome\":\"ok\"}\n\u{202e}\u{1b}[2J\u{0}";
    let script = json!([
        {"op": "registry.get", "id": forged},
        {"op": "registry.delete", "id": forged.repeat(400)},
        {"op": "session", "name": forged},
        {"op": "agent.deleted", "key": forged},
        {"op": "http", "url": format!("http://h.test/{forged}")},
        {"op": "http", "method": forged, "url": "http://h.test/"},
        {"op": "error", "kind": "cloud", "message": forged},
    ]);
    call(&job, &script).fails(CLOUD_ERROR, &[]);
    let all = lines(&job);
    assert_eq!(all.len(), 7, "{all:?}");
    assert!(all[0]["target"].as_str().unwrap().contains("\\n{\"v\":1"), "{}", all[0]);
    assert!(all[1]["target"].as_str().unwrap().ends_with(" more bytes)"), "{}", all[1]);
    assert_eq!(all.iter().filter(|line| line["kind"] == "call").count(), 1);
    assert_eq!(last_call(&job)["outcome"], "error");
}

#[test]
fn the_number_of_audit_lines_of_a_call_is_bounded() {
    let job = audited(Job::default());
    call_with_uses(&job, "vm-1", 10_100).run().result();
    let all = lines(&job);
    assert_eq!((all.len(), &last_call(&job)["dropped"]), (10_001, &json!(100)));
}

#[test]
fn cache_problems_are_audited() {
    let job = audited(Job::new().guest_bytes(&hostile::guest("small")));
    let has_vm = || drop(job.call("has_vm", json!(["vm-1"])).run().result().clone());
    has_vm();
    let artifact = job.cached(".cwasm").remove(0);
    write(&artifact, b"nonsense");
    has_vm();
    tests::job::set_mode(&job.cache_dir(), 0o777);
    has_vm();
    let events = of_kind(&job, "cache");
    let names: Vec<&Value> = events.iter().map(|line| &line["event"]).collect();
    assert_eq!(names, ["compiling", "doubted", "compiling", "unusable", "compiling", "not-kept"]);
    assert!(events[1]["why"].as_str().unwrap().contains("is damaged; the guest is prepared again"), "{}", events[1]);
    assert!(events[3]["why"].as_str().unwrap().contains("is writable by group or others"), "{}", events[3]);
    assert_eq!(of_kind(&job, "call").len(), 3);
}

#[test]
fn calls_of_the_call_command_are_audited() {
    let job = audited(Job::default());
    let (config, script) = (job.config_file(), json!({"probe": [{"op": "registry.get", "id": "x"}]}).to_string());
    for arguments in [vec!["create_disk", "1", &script, "null"], vec!["info"], vec!["has_vm"], vec!["no_such_method"]] {
        let mut command = std::process::Command::new(dist::tool());
        command.arg("call").args(&arguments).arg("--config").arg(&config);
        tests::process::run(&mut command, b"", tests::process::GUARD);
    }
    let calls = of_kind(&job, "call");
    let outcomes: Vec<Value> = calls.iter().map(|line| json!([line["method"], line["outcome"], line["who"]])).collect();
    let expected = [
        json!(["create_disk", "ok", null]),
        json!(["info", "ok", null]),
        json!(["has_vm", "error", "request"]),
        json!(["no_such_method", "error", "request"]),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(about(&job, "registry").len(), 1);
}
