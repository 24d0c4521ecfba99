//! Registries that fail: the error of the call says what failed and what to do.

use super::{job, settings};
use serde_json::{Value, json};
use tests::cloud::create_vm;
use tests::registry_server::RegistryServer;
use tests::servers::{Answer, Authority, Identity, Server, Validity};
use tests::{CLOUD_ERROR, CPI_ERROR, Job, Response};

fn section(server: &Server) -> Value {
    json!({"endpoint": server.origin(), "user": "user", "password": "the registry's password"})
}

/// Runs every method that needs the registry and returns the responses.
fn calls(job: &Job) -> Vec<Response> {
    let limited = json!({"connect_seconds": 1, "first_byte_seconds": 1, "idle_seconds": 1});
    let file = std::fs::read_to_string(job.config_file()).unwrap();
    let mut config: Value = serde_json::from_str(&file).unwrap();
    config["limits"] = limited;
    tests::job::write(&job.config_file(), config.to_string().as_bytes());
    let other = |method: &str, arguments: Value| job.call(method, arguments).api_version(1).run();
    vec![
        create_vm(job, &Value::Null).api_version(1).run(),
        other("attach_disk", json!(["vm-1", "disk-1"])),
        other("detach_disk", json!(["vm-1", "disk-1"])),
        other("delete_vm", json!(["vm-1"])),
    ]
}

/// Checks that every method that needs the registry fails with these texts.
#[track_caller]
fn check_all_fail(problem: &str, section: Value, expected: &[&str]) {
    let endpoint = section["endpoint"].as_str().unwrap().to_owned();
    for (index, response) in calls(&job(section)).iter().enumerate() {
        assert!(response.json["error"].is_object(), "{problem}, call {index}: {}", response.json);
        response.fails(CLOUD_ERROR, &[&format!("registry {endpoint} ")]).fails(CLOUD_ERROR, expected);
        assert_eq!(response.error()["ok_to_retry"], false);
        let shown = format!("{} {}", response.json, response.stderr);
        assert!(!shown.contains("the registry's password"), "{shown}");
    }
}

#[test]
fn the_error_names_a_registry_that_cannot_be_reached_and_says_what_to_check() {
    let check = "check that it runs and that `registry` in the CPI's config is correct";
    let unreachable = json!({"endpoint": "http://127.0.0.1:1", "user": "u", "password": "the registry's password"});
    check_all_fail("down", unreachable, &["did not answer", check]);
    let silent = Server::answering(Answer::stall(""));
    check_all_fail("slow", section(&silent), &["`limits.first_byte_seconds`", check]);
    let stops = Server::answering(Answer::stall("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"));
    check_all_fail("slow in the middle", section(&stops), &["`limits.idle_seconds`", check]);
    let hangs_up = Server::with_handler("http", drop);
    check_all_fail("hanging up", section(&hangs_up), &["ended before the server responded", check]);
    let nonsense = Server::answering(Answer::bytes("SSH-2.0\r\n"));
    check_all_fail("no HTTP", section(&nonsense), &["the response is not valid HTTP/1.1", check]);
}

#[test]
fn the_error_of_a_refused_request_says_why_and_what_to_do() {
    let authority = Authority::new();
    for (status, expected) in [
        (401, "with HTTP 401; check `registry.user` and `registry.password` in the CPI's config"),
        (403, "with HTTP 403; check `registry.user` and `registry.password`"),
        (500, "with HTTP 500; read the registry's log"),
        (503, "with HTTP 503; read the registry's log"),
        (302, "with HTTP 302; set `registry.endpoint` in the CPI's config to the URL that it redirects to"),
    ] {
        let server = Server::start(move |_| Answer::new(status, "{}").header("Location", "/elsewhere"));
        check_all_fail(expected, section(&server), &[expected]);
        // The redirect is not followed.
        assert!(server.requests().iter().all(|seen| seen.target().starts_with("/instances/")));
    }
    // 404 is an error only for a write, not for a read or a deletion.
    let lost = Server::answering(Answer::new(404, ""));
    let responses = calls(&job(section(&lost)));
    responses[0].fails(CLOUD_ERROR, &["with HTTP 404; check the path in `registry.endpoint` in the CPI's config"]);
    responses[1].fails(CLOUD_ERROR, &["the registry has no settings for `vm-1`"]);
    responses[2].result();
    responses[3].result();

    let stranger = Server::tls(Identity::self_signed(&["127.0.0.1"]).server(None), |_| Answer::ok("{}"));
    let mut tls = section(&stranger);
    check_all_fail("of another authority", tls.clone(), &["TLS failed"]);
    tls["ca"] = json!(authority.pem());
    check_all_fail("of another authority than the configured", tls, &["TLS failed"]);
    assert_eq!(stranger.requests().len(), 0);
    let named = Server::tls(authority.issue(&["elsewhere.test"], Validity::Now).server(None), |_| Answer::ok("{}"));
    let mut wrong_name = section(&named);
    wrong_name["ca"] = json!(authority.pem());
    check_all_fail("of another name", wrong_name, &["TLS failed"]);
}

#[test]
fn settings_that_cannot_be_parsed_are_not_changed() {
    let stored = |text: &str| Answer::json(200, &json!({"status": "ok", "settings": text}));
    let cases = [
        (Answer::ok("nonsense"), "something other than settings; check that `registry.endpoint` is a BOSH registry"),
        (Answer::ok(""), "something other than settings"),
        (Answer::json(200, &json!({"status": "ok"})), "something other than settings"),
        (Answer::json(200, &json!({"settings": {"a": 1}})), "something other than settings"),
        (Answer::json(200, &json!([])), "something other than settings"),
        (stored("nonsense"), "not a JSON object; fix or delete them"),
        (stored("[]"), "not a JSON object"),
        (stored("{\"disks\":{},\"disks\":{}}"), "not a JSON object"),
        (stored(&"[".repeat(10_000)), "not a JSON object"),
        (stored(&json!({"a": "x".repeat(300 << 10)}).to_string()), "`registry_kib` (256)"),
        (Answer::flood("HTTP/1.1 200 OK\r\n\r\n", vec![b'{'; 1 << 16]), "`registry_kib` (256)"),
        (Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"), "ended before the response was complete"),
    ];
    for (answer, expected) in cases {
        let server = Server::answering(answer);
        let job = job(section(&server));
        for method in ["attach_disk", "detach_disk"] {
            let response = job.call(method, json!(["vm-1", "disk-1"])).api_version(1).run();
            response.fails(CLOUD_ERROR, &[expected]);
        }
        assert!(server.requests().iter().all(|seen| seen.method() == "GET"), "{expected}");
    }
}

#[test]
fn a_missing_registry_section_is_a_config_error_for_methods_that_need_it() {
    let job = Job::default();
    for versions in [(1, 1), (1, 2), (2, 1), (3, 1)] {
        let responses = [
            create_vm(&job, &Value::Null).api_version(versions.0).stemcell_api_version(versions.1).run(),
            job.call("attach_disk", json!(["vm-1", "disk-1"]))
                .api_version(versions.0)
                .stemcell_api_version(versions.1)
                .run(),
            job.call("detach_disk", json!(["vm-1", "disk-1"]))
                .api_version(versions.0)
                .stemcell_api_version(versions.1)
                .run(),
            job.call("delete_vm", json!(["vm-1"])).api_version(versions.0).stemcell_api_version(versions.1).run(),
        ];
        for response in responses {
            response.fails(
                CPI_ERROR,
                &["config: ", "`registry` is missing", "add \"registry\": {\"endpoint\"", "or use a newer stemcell"],
            );
        }
        // Other methods need no registry.
        job.call("has_vm", json!(["vm-1"])).api_version(versions.0).stemcell_api_version(versions.1).run().result();
    }
}

#[test]
fn the_error_names_an_invalid_registry_key_without_quoting_its_value() {
    for (key, value, expected) in [
        ("endpoint", json!("ftp://127.0.0.1"), "`endpoint` must be an http:// or https:// URL"),
        (
            "endpoint",
            json!("http://u:hunter2@127.0.0.1"),
            "`endpoint` holds credentials; put them into `user` and `password`",
        ),
        ("user", json!("a:b"), "`user` must not be empty nor hold a colon"),
        ("password", json!(""), "`password` must not be empty"),
        ("pasword", json!("hunter2"), "unknown field `pasword`"),
    ] {
        let mut section = json!({"endpoint": "http://127.0.0.1", "user": "u", "password": "a password"});
        section[key] = value;
        let response = job(section).call("has_vm", json!(["vm-1"])).run();
        response.fails(CPI_ERROR, &["cpi.json", "`registry` is invalid", expected]);
        assert!(!response.json.to_string().contains("hunter2"));
    }
    let mut section = json!({"endpoint": "https://127.0.0.1:1", "user": "u", "password": "a password"});
    section["ca"] = json!("missing.pem");
    let response = job(section).call("delete_vm", json!(["vm-1"])).api_version(1).run();
    response.fails(CPI_ERROR, &["missing.pem cannot be read"]);
}

#[test]
fn settings_that_could_not_be_deleted_are_named_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let registry = RegistryServer::start(dir.path());
    registry.put("vm-1", &settings());
    // This registry accepts every write and fails every deletion.
    let no_deletion = Server::start(|seen| match seen.method() {
        "GET" => Answer::json(404, &json!({"status": "not_found"})),
        "PUT" => Answer::json(200, &json!({"status": "ok"})),
        _ => Answer::new(500, ""),
    });
    let script = json!([{"op": "agent.bootstrap"}, {"op": "agent.created", "vm": "vm-1", "key": "key-1"}, {"op": "error", "kind": "vm-creation-failed", "message": "no room", "ok_to_retry": true}]);
    let response = create_vm(&job(section(&no_deletion)), &script).stemcell_api_version(1).run();
    response.fails("Bosh::Clouds::VMCreationFailed", &["no room"]);
    assert!(
        response.stderr.contains("settings for `key-1` are left in the registry; delete them there"),
        "{}",
        response.stderr
    );
    assert!(response.log().contains("settings for `key-1` are left in the registry"), "{}", response.log());
}
