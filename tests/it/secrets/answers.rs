//! What a guest sees of answers: the shown places of requests with secrets, nothing that a grant
//! drops, and no agent settings of another call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tests::cloud::{answered, create_vm, get, outcomes, post, vm_outcomes, with_policy};
use tests::servers::{Answer, Server, with};
use tests::{CLOUD_ERROR, Job, dist};

/// A secret that is too short for the tripwire.
const PIN: &str = "8bytesec";

fn job(server: &Server, keys: Value) -> Job {
    with_policy(json!({"http": [with(with(server.grant("api"), json!({"plain_http": true})), keys)]}))
        .properties(json!({"pin": PIN}))
}

fn slots(show: Value) -> Value {
    json!({"slots": [{"method": "POST", "path": "/vms", "place": "json:/data", "takes": ["pin", "agent"], "show": show}]})
}

/// Searches the guest's memory for the PIN, which the script holds in reverse only.
fn find() -> Value {
    json!({"op": "find", "reversed": PIN.chars().rev().collect::<String>()})
}

#[test]
fn no_filled_value_comes_back_from_a_server_that_echoes() {
    for status in [200, 400, 500] {
        let server = Server::start(move |seen| {
            Answer::new(status, seen.text()).header("Content-Type", "application/json").header("X-Echo", seen.text())
        });
        let job = job(&server, slots(json!(["json:/name"])));
        let sent = post(&server.url("/vms"), &json!({"data": "{{props.pin}}", "name": "vm-1", "more": {"x": 1}}));
        let outcomes = outcomes(&job, &json!([sent, find()]));
        let seen = answered(&outcomes[0], status);
        assert_eq!(seen["body"], json!({"name": "vm-1"}).to_string(), "{seen}");
        assert_eq!(outcomes[1]["ok"]["count"], 0);
        assert_eq!(server.requests()[0].json()["data"], PIN);
    }
}

#[test]
fn people_see_the_error_that_the_guest_does_not_see() {
    let server = Server::start(|seen| {
        let echo = format!("flavor m9 is unknown; you sent {}", seen.text());
        Answer::json(400, &json!({"badRequest": {"message": echo}}))
    });
    let job = job(&server, slots(json!([])));
    let script = json!([
        post(&server.url("/vms"), &json!({"data": "{{props.pin}}"})),
        {"op": "error", "kind": "cloud", "message": "the server said: {{0|json}}"},
    ]);
    let response = create_vm(&job, &script).run();
    response.fails(
        CLOUD_ERROR,
        &["the guest did not see all of these responses: POST ", "answered 400: ", "flavor m9 is unknown"],
    );
    let (guest, people) = response.message().split_once("the guest did not see all of").unwrap();
    assert!(!guest.contains("flavor m9") && !people.contains(PIN), "{}", response.message());
    assert!(response.stderr.contains("flavor m9 is unknown") && !response.stderr.contains(PIN), "{}", response.stderr);
}

/// A container API shows the command line and the environment of every container. A spy guest's
/// `has_vm` must not read there what an earlier `create_vm` wrote for another VM.
#[test]
fn a_later_call_does_not_read_agent_settings_back() {
    let written = Arc::new(Mutex::new(String::new()));
    let seen_by_server = Arc::clone(&written);
    let server = Server::start(move |seen| {
        if seen.target() == "/vms" {
            *seen_by_server.lock().unwrap() = seen.json()["data"].as_str().unwrap().to_owned();
            return Answer::json(201, &json!({"id": "vm-1"}));
        }
        let data = seen_by_server.lock().unwrap().clone();
        let plain = STANDARD.decode(&data).map_or(data.clone(), |bytes| String::from_utf8(bytes).unwrap());
        let shell = format!("echo '{plain}' > /var/vcap/bosh/settings.json");
        match seen.target() {
            "/text" => Answer::ok(shell).header("Content-Type", "text/plain"),
            "/header" => Answer::ok("{}").header("X-Data", &data),
            _ => Answer::json(
                200,
                &json!({
                    "Config": {"Cmd": ["sh", "-c", shell], "Env": [data, STANDARD.encode(&data)]},
                    "parsed": serde_json::from_str::<Value>(&plain).unwrap(), "Id": "vm-1",
                }),
            ),
        }
    });
    let job = job(&server, slots(json!(["json:/id"])));
    for encodings in [json!([]), json!(["base64"])] {
        let script = json!([
            {"op": "agent.bootstrap", "encodings": encodings},
            post(&server.url("/vms"), &json!({"data": "{{0.ok}}"})),
        ]);
        answered(&vm_outcomes(&create_vm(&job, &script).run())[1], 201);
        assert!(!written.lock().unwrap().is_empty());
        let script = json!([
            get(&server.url("/containers/json")), get(&server.url("/text")), get(&server.url("/header")),
            {"op": "find", "reversed": "drowssap-vne-terces7YrAnAc"},
        ]);
        let outcomes = outcomes(&job, &script);
        let body = answered(&outcomes[0], 200)["body"].to_string();
        assert!(body.contains("(withheld: agent settings)") && body.contains("vm-1"), "{body}");
        assert!(!body.contains("env-password") && !body.contains("agent_id"), "{body}");
        assert_eq!(outcomes[1]["error"]["kind"], "protocol", "{}", outcomes[1]);
        assert_eq!(answered(&outcomes[2], 200)["headers"]["x-data"], "(withheld: agent settings)");
        assert_eq!(outcomes[3]["ok"]["count"], 0);
    }
}

#[test]
fn check_and_inspect_warn_where_settings_could_be_read_back() {
    let server = Server::answering(Answer::ok(""));
    let warning = "a later call could read them back by grant `api`";
    let mut dropped = slots(json!([]));
    dropped["drop"] = json!(["json:/Config/Env", "json:/Config/Cmd"]);
    for (grant, warns) in [(slots(json!([])), true), (dropped, false)] {
        let job = job(&server, grant);
        let (_, checked) = job.check();
        let mut inspect = Command::new(dist::tool());
        inspect.arg("inspect").arg(dist::probe()).arg("--config").arg(job.config_file());
        let inspected = inspect.env_clear().current_dir("/").output().unwrap();
        let inspected = String::from_utf8_lossy(&[inspected.stdout, inspected.stderr].concat()).into_owned();
        assert!(inspected.contains("create_vm"), "{inspected}");
        for output in [checked, inspected] {
            assert_eq!(output.contains(warning), warns, "{output}");
        }
    }
}
