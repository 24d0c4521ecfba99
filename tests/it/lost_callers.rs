//! Calls whose caller stops reading stdout. The guest is asked to end, as by a signal. What the
//! call created is deleted again, unless the whole response was written before.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use tests::audit::{audited, last_call, lines};
use tests::lost_caller::{Abandoned, Leaves, Stdout, run};
use tests::servers::{Answer, Server};
use tests::{Job, cloud};

/// Returns a cloud ID that makes the probe run a script. It has only characters that IDs of clouds
/// have as well.
fn cid(operations: &Value) -> String {
    format!("probe:{}", URL_SAFE_NO_PAD.encode(operations.to_string()))
}

/// A cloud whose objects the probe creates by POST, and deletes by DELETE if it is asked to.
struct Cloud {
    server: Server,
    job: Job,
    /// The ID of the object, which makes the probe's delete method send a DELETE.
    cid: String,
}

impl Cloud {
    fn new() -> Cloud {
        Cloud::with_deletion(&|server| {
            json!([
                {"op": "http", "method": "DELETE", "url": server.url("/disks/1")},
                {"op": "log", "message": "deleting"},
                {"op": "result", "json": null},
            ])
        })
    }

    /// Returns a cloud where the delete method runs this script.
    fn with_deletion(script: &dyn Fn(&Server) -> Value) -> Cloud {
        // The server chooses the ID, except where a request is about something that exists.
        let chosen = Arc::new(OnceLock::<String>::new());
        let known = Arc::clone(&chosen);
        let server = Server::start(move |request| {
            let found = request.target().starts_with("/found") && request.body == b"another-id";
            let id = if found { "another-id" } else { known.get().map_or("", String::as_str) };
            Answer::json(200, &json!({"id": id}))
        });
        let cid = cid(&script(&server));
        chosen.set(cid.clone()).unwrap();
        let job = audited(cloud::job(json!([server.grant("api")])));
        Cloud { server, job, cid }
    }

    fn post(&self) -> Value {
        json!({"op": "http", "method": "POST", "url": self.server.url("/disks"), "body": "a disk"})
    }

    fn lines(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().map(|request| request.line.trim_end_matches(" HTTP/1.1").to_owned()).collect()
    }

    /// Runs a script of `create_disk` that ends with the ID, for a caller that leaves after it.
    fn create(&self, mut script: Vec<Value>, leaves: &Leaves<'_>) -> Abandoned {
        script.push(json!({"op": "log", "message": "returning"}));
        script.push(json!({"op": "result", "json": self.cid}));
        run(&self.job.script(script.into()), Stdout::Full, leaves)
    }
}

/// Checks exit code and stderr of a call whose response was not delivered, and returns its audit line.
#[track_caller]
fn undelivered(job: &Job, abandoned: &Abandoned, says: &str) -> Value {
    assert_eq!(abandoned.code, Some(1), "{}", abandoned.stderr);
    let lines: Vec<&str> =
        abandoned.stderr.lines().filter(|line| line.contains("the response was not delivered")).collect();
    assert!(lines.len() == 1 && lines[0].contains(says), "`{says}` is not in: {}", abandoned.stderr);
    let line = last_call(job);
    assert_eq!(line["outcome"], "undelivered", "{line}");
    line
}

#[test]
fn a_guest_that_waits_is_asked_to_clean_up_when_its_caller_leaves() {
    let cloud = Cloud::new();
    let delete = json!({"op": "http", "method": "DELETE", "url": cloud.server.url("/by-itself")});
    let script = json!([
        cloud.post(),
        {"op": "log", "message": "waiting"},
        {"op": "clock.sleep", "ms": 60_000, "on_cancel": [{"op": "clock.ending"}, {"op": "log", "message": "cleaning up"}, delete]},
    ]);
    let abandoned = run(&cloud.job.script(script), Stdout::Empty, &Leaves::AtLine("waiting"));
    let line = undelivered(&cloud.job, &abandoned, "Broken pipe");
    assert!(abandoned.stderr.contains("cleaning up"), "{}", abandoned.stderr);
    let reason =
        "the call was ended, because its caller closed stdout before the response; the guest cleaned up in time";
    assert!(abandoned.stderr.contains(reason), "{}", abandoned.stderr);
    assert_eq!((&line["who"], &line["created"], &line["undo"]), (&json!("runtime"), &Value::Null, &Value::Null));
    assert_eq!(cloud.lines(), ["POST /disks", "DELETE /by-itself"]);
}

#[test]
fn what_a_call_created_is_deleted_if_its_caller_leaves_before_the_response_is_written() {
    let cloud = Cloud::new();
    let abandoned = cloud.create(vec![cloud.post()], &Leaves::AtLine("returning"));
    let line = undelivered(&cloud.job, &abandoned, "which this call created, was deleted again");
    assert_eq!((&line["undo"], &line["error"]), (&json!("deleted"), &Value::Null));
    assert_eq!(line["created"], json!(cloud.cid));
    assert_eq!(cloud.lines(), ["POST /disks", "DELETE /disks/1"]);
    // The requests of the deletion are in the audit log, before the line of the call.
    let operations: Vec<Value> = lines(&cloud.job).iter().map(|line| line["operation"].clone()).collect();
    assert_eq!(operations, [json!("POST"), json!("DELETE"), Value::Null]);
}

#[test]
fn a_vm_is_deleted_if_its_caller_leaves_in_the_middle_of_a_large_response() {
    let cloud = Cloud::new();
    let network = |n: usize| (format!("network-{n:0100}"), json!({"type": "manual", "cloud_properties": {}}));
    let networks: Value = (0..500).map(network).collect::<serde_json::Map<_, _>>().into();
    let script = json!([cloud.post(), {"op": "result", "json": cloud.cid}]);
    let call = cloud.job.call("create_vm", json!(["a", "stemcell-1", {"probe": script}, networks, [], {}]));
    let abandoned = run(&call, Stdout::Empty, &Leaves::AfterBytes(1));
    let line = undelivered(&cloud.job, &abandoned, "was deleted again");
    assert_eq!((&line["method"], &line["undo"]), (&json!("create_vm"), &json!("deleted")));
    assert_eq!(cloud.lines(), ["POST /disks", "DELETE /disks/1"]);
}

#[test]
fn a_snapshot_is_deleted_if_its_caller_leaves() {
    let cloud = Cloud::new();
    let script = json!([cloud.post(), {"op": "log", "message": "returning"}, {"op": "result", "json": cloud.cid}]);
    let call = cloud.job.call("snapshot_disk", json!(["disk-1", {"probe": script.to_string()}]));
    let abandoned = run(&call, Stdout::Full, &Leaves::AtLine("returning"));
    assert_eq!(undelivered(&cloud.job, &abandoned, "was deleted again")["undo"], "deleted");
    assert_eq!(cloud.lines(), ["POST /disks", "DELETE /disks/1"]);
}

#[test]
fn nothing_is_undone_once_the_last_byte_is_written() {
    let cloud = Cloud::new();
    let script = json!([cloud.post(), {"op": "result", "json": cloud.cid}]);
    // The response fits into the pipe, and no one ever reads it.
    let abandoned = run(&cloud.job.script(script), Stdout::Empty, &Leaves::AfterExit);
    assert_eq!((abandoned.code, abandoned.stderr.as_str()), (Some(0), ""));
    assert_eq!(last_call(&cloud.job)["outcome"], "ok");
    assert_eq!(cloud.lines(), ["POST /disks"]);
}

#[test]
fn what_a_guest_found_is_not_deleted() {
    for before in [
        // No request at all, a read, and a change of something else.
        json!([]),
        json!([{"op": "http", "method": "POST", "url": "/found", "body": "another-id"}]),
        json!([{"op": "http", "method": "GET", "url": "/found?id=ID"}]),
        // It was there before the POST.
        json!([
            {"op": "http", "method": "GET", "url": "/found?id=ID"},
            {"op": "http", "method": "POST", "url": "/again", "body": "a disk"},
        ]),
        // The request names it.
        json!([{"op": "http", "method": "POST", "url": "/action?id=ID"}]),
        json!([{"op": "http", "method": "POST", "url": "/action", "body": "ID"}]),
    ] {
        let cloud = Cloud::new();
        let mut script = before.as_array().cloned().unwrap_or_default();
        for operation in &mut script {
            let url = cloud.server.url(&operation["url"].as_str().unwrap_or_default().replace("ID", &cloud.cid));
            operation["url"] = json!(url);
            if operation["body"] == "ID" {
                operation["body"] = json!(cloud.cid);
            }
        }
        let requests = script.len();
        let abandoned = cloud.create(script, &Leaves::AtLine("returning"));
        let line = undelivered(&cloud.job, &abandoned, "was not deleted: no response in this call shows");
        assert_eq!(line["undo"], "kept", "{before}");
        assert_eq!(cloud.lines().len(), requests, "{before}: {:?}", cloud.lines());
    }
}

#[test]
fn stemcells_and_networks_stay_and_are_audited() {
    let cloud = Cloud::new();
    let image = cloud.job.path("image");
    tests::job::write(&image, b"image");
    let network = json!({"network": cloud.cid, "range": "10.0.0.0/24", "gateway": "10.0.0.1", "cloud_properties": {}});
    for (method, arguments, result, says) in [
        ("create_stemcell", json!([image]), json!(cloud.cid), "stemcells stay, because light ones are shared"),
        ("create_network", json!([]), network, "networks are not deleted automatically"),
    ] {
        let script = json!([cloud.post(), {"op": "log", "message": "returning"}, {"op": "result", "json": result}]);
        let mut arguments = arguments;
        let properties = if method == "create_network" {
            json!({"type": "manual", "cloud_properties": {"probe": script}})
        } else {
            json!({"probe": script})
        };
        arguments.as_array_mut().unwrap().push(properties);
        let abandoned = run(&cloud.job.call(method, arguments), Stdout::Full, &Leaves::AtLine("returning"));
        assert_eq!(undelivered(&cloud.job, &abandoned, says)["undo"], "kept");
    }
    assert_eq!(cloud.lines(), ["POST /disks", "POST /disks"]);
}

#[test]
fn a_deletion_that_fails_or_takes_too_long_is_reported() {
    for (deletion, says) in [
        (
            json!([{"op": "error", "kind": "cloud", "message": "it is in use"}]),
            "could not be deleted: guest: it is in use",
        ),
        (json!([{"op": "loop"}]), "could not be deleted: limit: the call reached `cleanup_seconds` (1)"),
        (json!([{"op": "clock.sleep", "ms": 60_000}, {"op": "loop"}]), "reached `cleanup_seconds` (1)"),
        (json!([{"op": "trap"}]), "could not be deleted: guest: trapped in delete_disk"),
    ] {
        let cloud = Cloud::with_deletion(&|_| deletion.clone());
        let cloud = Cloud { job: cloud.job.limits(json!({"cleanup_seconds": 1})), ..cloud };
        let abandoned = cloud.create(vec![cloud.post()], &Leaves::AtLine("returning"));
        assert_eq!(undelivered(&cloud.job, &abandoned, says)["undo"], "failed");
    }
    // What is gone already needs no deletion.
    let cloud = Cloud::with_deletion(&|_| json!([{"op": "error", "kind": "disk-not-found"}]));
    let abandoned = cloud.create(vec![cloud.post()], &Leaves::AtLine("returning"));
    assert_eq!(undelivered(&cloud.job, &abandoned, "was deleted again")["undo"], "deleted");
}

#[test]
fn the_deletion_is_a_call_of_its_own_without_the_agent_settings_of_the_first() {
    let cloud = Cloud::with_deletion(&|server| {
        json!([
            {"op": "call"}, {"op": "agent.bootstrap"}, {"op": "clock.ending"},
            {"op": "http", "method": "DELETE", "url": server.url("/x"), "body": "{{0.ok.method}} {{1.error.kind}} {{2.ok}}"},
            {"op": "result", "json": null},
        ])
    });
    let script = json!([cloud.post(), {"op": "log", "message": "returning"}, {"op": "result", "json": cloud.cid}]);
    let call = cloud.job.call("create_vm", json!(["a", "stemcell-1", {"probe": script}, cloud::networks(), [], {}]));
    let abandoned = run(&call, Stdout::Full, &Leaves::AtLine("returning"));
    undelivered(&cloud.job, &abandoned, "was deleted again");
    let requests = cloud.server.requests();
    assert_eq!(String::from_utf8_lossy(&requests[1].body), "delete_vm refused null");
}

#[test]
fn a_guest_that_ignores_the_lost_caller_is_stopped_after_cleanup_seconds() {
    let job = audited(Job::default()).limits(json!({"cleanup_seconds": 1}));
    for last in [json!({"op": "loop"}), json!({"op": "clock.sleep", "ms": 60_000, "repeat": 1_000_000})] {
        let script =
            json!([{"op": "log", "message": "waiting"}, {"op": "clock.sleep", "ms": 60_000}, {"op": "loop"}, last]);
        let abandoned = run(&job.script(script), Stdout::Empty, &Leaves::AtLine("waiting"));
        assert_eq!(undelivered(&job, &abandoned, "Broken pipe")["who"], "runtime");
        let reason = "the guest did not end within `cleanup_seconds` (1)";
        assert!(abandoned.stderr.contains(reason), "{}", abandoned.stderr);
    }
}

#[test]
fn a_caller_that_leaves_ends_a_guest_that_computes() {
    let job = audited(Job::default());
    let turn = json!({"op": "spin_ms", "ms": 50, "repeat": 1000});
    let cancelled = json!({"op": "clock.sleep", "ms": 1, "on_cancel": [{"op": "log", "message": "cleaning up"}]});
    let script = json!([{"op": "log", "message": "computing"}, turn, cancelled]);
    let job = job.limits(json!({"cleanup_seconds": 2}));
    let abandoned = run(&job.script(script), Stdout::Empty, &Leaves::AtLine("computing"));
    undelivered(&job, &abandoned, "Broken pipe");
}

#[test]
fn a_closed_stderr_is_not_an_ending() {
    let server = Server::answering(Answer::ok(""));
    let job = audited(cloud::job(json!([server.grant("api")])));
    // Lines after the end of stderr is closed, and time for the runtime to notice.
    let script = json!([
        {"op": "log", "message": "one"}, {"op": "clock.sleep", "ms": 300}, {"op": "log", "message": "two"},
        {"op": "http", "url": server.url("/")}, {"op": "result", "json": "disk-made"},
    ]);
    let call = job.script(script);
    let mut child = call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), call.request().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let response: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &response["result"]), (Some(0), &json!("disk-made")), "{response}");
    assert_eq!(last_call(&job)["outcome"], "ok");
}

#[test]
fn a_socket_without_a_reader_is_an_ending_and_a_half_closed_one_is_not() {
    use std::net::Shutdown;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let script = json!([
        {"op": "log", "message": "waiting"},
        {"op": "clock.sleep", "ms": 400, "on_cancel": []},
        {"op": "result", "json": "disk-made"},
    ]);
    for (half, code) in [(true, 0), (false, 1)] {
        let job = audited(Job::default());
        let call = job.script(script.clone());
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut command = call.command();
        command.stdin(Stdio::piped()).stdout(OwnedFd::from(theirs)).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), call.request().as_bytes()).unwrap();
        if half {
            ours.shutdown(Shutdown::Write).unwrap();
            let mut response = String::new();
            std::io::Read::read_to_string(&mut &ours, &mut response).unwrap();
            assert!(response.contains("disk-made"), "{response}");
        } else {
            drop(ours);
        }
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(last_call(&job)["outcome"], if half { "ok" } else { "undelivered" });
    }
}

#[test]
fn a_caller_that_leaves_while_the_guest_is_compiled_ends_the_call() {
    let job = audited(Job::new()).configure(|config| config["log"] = json!({"level": "debug"}));
    let call = job.call("has_vm", json!(["vm-1"]));
    let abandoned = run(&call, Stdout::Empty, &Leaves::AtLine("it is compiled now"));
    undelivered(&job, &abandoned, "Broken pipe");
    let reason = "the call was ended while the guest was compiled, because its caller closed stdout";
    assert!(abandoned.stderr.contains(reason), "{}", abandoned.stderr);
}

#[test]
fn settings_in_the_registry_are_deleted_with_the_vm() {
    let dir = tempfile::tempdir().unwrap();
    let registry = tests::registry_server::RegistryServer::start(dir.path());
    let cloud = Cloud::new();
    let job = cloud.job.configure(|config| config["registry"] = registry.section());
    let cloud = Cloud { job, ..cloud };
    let script = json!([
        {"op": "agent.bootstrap"}, cloud.post(), {"op": "agent.created", "vm": cloud.cid, "key": "the-key"},
        {"op": "log", "message": "returning"}, {"op": "result", "json": cloud.cid},
    ]);
    let arguments = json!(["a", "stemcell-1", {"probe": script}, cloud::networks(), [], {}]);
    let call = || cloud.job.call("create_vm", arguments.clone()).api_version(1).stemcell_api_version(1);
    let abandoned = run(&call(), Stdout::Full, &Leaves::AtLine("returning"));
    undelivered(&cloud.job, &abandoned, "was deleted again");
    // `create_vm` does not touch settings that exist, so it succeeds only if they are gone.
    assert_eq!(*call().run().result(), json!(cloud.cid));
}
