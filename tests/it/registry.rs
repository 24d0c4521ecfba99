//! The registry as calls use it: what they store there, which settings a guest may
//! read and change, and what happens if the registry fails.

mod failures;
mod server;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tests::cloud::{create_vm, with_policy};
use tests::registry_server::{RegistryServer, basic};
use tests::servers::{Answer, Authority, Server, Validity};
use tests::{CLOUD_ERROR, Job, probe};

fn settings() -> Value {
    json!({
        "agent_id": "agent-1", "vm": {"name": "the-name"}, "mbus": "nats://n:a-password@10.0.0.6:4222", "ntp": ["10.0.0.7"],
        "env": {"bosh": {"password": "a-secret-of-env"}}, "networks": {"net": {"type": "manual", "ip": "10.0.0.5"}},
        "disks": {"system": "/dev/sda", "ephemeral": "/dev/sdb", "persistent": {"disk-0": {"path": "/dev/sdc"}}},
    })
}

fn job(section: Value) -> Job {
    with_policy(json!({"http": []})).configure(|config| config["registry"] = section)
}

/// A registry that behaves like that of the Go CLI: reads need no auth, responses are empty, and
/// new settings are answered with 201.
fn go_dialect() -> (Server, Arc<Mutex<BTreeMap<String, String>>>) {
    let stored: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    let storage = Arc::clone(&stored);
    let server = Server::start(move |seen| {
        let mut storage = storage.lock().unwrap();
        let id = seen
            .target()
            .strip_prefix("/instances/")
            .and_then(|rest| rest.strip_suffix("/settings"))
            .unwrap()
            .to_owned();
        if seen.method() != "GET" && seen.header("authorization") != Some(basic("go", "a go password").as_str()) {
            return Answer::new(401, "").header("WWW-Authenticate", "Basic realm=\"Bosh Registry\"");
        }
        match seen.method() {
            "GET" => match storage.get(&id) {
                Some(settings) => Answer::json(200, &json!({"settings": settings, "status": "ok"})),
                None => Answer::json(404, &json!({"settings": "", "status": "not_found"})),
            },
            "PUT" => Answer::new(if storage.insert(id, seen.text().to_owned()).is_none() { 201 } else { 200 }, ""),
            _ => {
                storage.remove(&id);
                Answer::new(200, "")
            }
        }
    });
    (server, stored)
}

/// Checks the settings of a VM from its creation to its deletion, with API version 1.
#[track_caller]
fn check_lifecycle(job: &Job, stored: &dyn Fn(&str) -> Option<Value>) {
    let created = create_vm(job, &Value::Null).api_version(1).run();
    let vm = created.result().as_str().unwrap().to_owned();
    let made = stored(&vm).unwrap();
    assert_eq!((&made["agent_id"], &made["disks"]["persistent"]), (&json!("agent-1"), &json!({})));
    let call = |method: &str, arguments: Value| job.call(method, arguments).api_version(1).run().result().clone();
    call("attach_disk", json!([vm, "disk-7"]));
    let hint = stored(&vm).unwrap()["disks"]["persistent"]["disk-7"].clone();
    assert!(hint.as_str().unwrap().starts_with("/dev/disk/by-id/probe-"), "{hint}");
    call("detach_disk", json!([vm, "disk-7"]));
    assert_eq!(stored(&vm), Some(made));
    call("delete_vm", json!([vm]));
    assert_eq!(stored(&vm), None);
    // Deleting settings that do not exist succeeds, and so does detaching.
    call("delete_vm", json!([vm]));
    call("detach_disk", json!([vm, "disk-7"]));
}

#[test]
fn calls_work_with_both_registry_dialects_and_with_and_without_tls() {
    let dir = tempfile::tempdir().unwrap();
    let server = RegistryServer::start(dir.path());
    check_lifecycle(&job(server.section()), &|id| server.get(id));

    let secure_dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let secure =
        RegistryServer::secure(secure_dir.path(), &authority.issue(&["127.0.0.1"], Validity::Now), &authority.pem());
    check_lifecycle(&job(secure.section()), &|id| secure.get(id));
    // The authority may be a file in the directory of the config.
    let mut section = secure.section();
    section["ca"] = json!("registry-ca.pem");
    let by_file = job(section);
    tests::job::write(&by_file.path("config/registry-ca.pem"), authority.pem().as_bytes());
    check_lifecycle(&by_file, &|id| secure.get(id));

    let (go, stored) = go_dialect();
    // An endpoint without a scheme uses http.
    let endpoint = go.address().to_string();
    let get = |id: &str| stored.lock().unwrap().get(id).map(|text| serde_json::from_str(text).unwrap());
    check_lifecycle(&job(json!({"endpoint": endpoint, "user": "go", "password": "a go password"})), &get);
    check_lifecycle(
        &job(json!({"endpoint": format!("http://{endpoint}/"), "user": "go", "password": "a go password"})),
        &get,
    );
    let put = go.requests().into_iter().find(|seen| seen.method() == "PUT").unwrap();
    assert_eq!(put.header("content-type"), Some("application/json"));
}

/// Runs a script in `attach_disk` of `vm-1` and returns the outcomes.
#[track_caller]
fn attach_disk_outcomes(job: &Job, script: &Value) -> Vec<Value> {
    let response = job.call("attach_disk", json!(["vm-1", probe::cid(script)])).api_version(1).run();
    probe::outcomes_in(response.message())
}

#[test]
fn a_guest_sees_settings_with_their_secrets_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let server = RegistryServer::start(dir.path());
    server.put("vm-1", &settings());
    let outcomes = attach_disk_outcomes(
        &job(server.section()),
        &json!([{"op": "registry.get", "id": "vm-1"}, {"op": "find", "reversed": "drowssap-a"}, {"op": "find", "reversed": "vne-fo-terces-a"}]),
    );
    let mut seen = settings();
    seen["mbus"] = json!("<sealed:registry:mbus>");
    seen["ntp"] = json!(["<sealed:registry:ntp.0>"]);
    seen["env"] = json!({"bosh": {"password": "<sealed:registry:env.bosh.password>"}});
    assert_eq!(outcomes[0]["ok"], seen);
    assert_eq!((&outcomes[1]["ok"]["count"], &outcomes[2]["ok"]["count"]), (&json!(0), &json!(0)));
}

#[test]
fn a_guest_can_change_only_disks_and_networks() {
    let dir = tempfile::tempdir().unwrap();
    let server = RegistryServer::start(dir.path());
    let job = job(server.section());
    let put = |changes: Value| json!({"op": "registry.put", "id": "vm-1", "settings": changes});
    for (changes, expected_message) in [
        (json!({"mbus": "nats://mine"}), "`mbus` differs from what is stored"),
        (json!({"agent_id": "agent-2"}), "`agent_id` differs"),
        (json!({"new": 1}), "`new` differs"),
        (json!({"env": null}), "`env` differs"),
        (json!([]), "must be a JSON object"),
        (json!({"disks": {"system": {"path": "/dev/sda"}}}), "`disks.system` must be a string"),
        (
            json!({"disks": {"persistent": {"d": 1}}}),
            "`disks.persistent.d` must be a string or an object with string values",
        ),
        (json!({"disks": {"persistent": {"d": {"lun": 1}}}}), "`disks.persistent.d`"),
        (json!({"networks": []}), "`networks` must be an object of objects"),
        (json!("{\"disks\":{},\"disks\":{}}"), "not JSON"),
    ] {
        server.put("vm-1", &settings());
        let outcome = attach_disk_outcomes(&job, &json!([put(changes.clone())])).remove(0);
        assert_eq!(outcome["error"]["kind"], "invalid", "{changes}: {outcome}");
        assert!(outcome["error"]["message"].as_str().unwrap().contains(expected_message), "{changes}: {outcome}");
        assert_eq!(server.get("vm-1"), Some(settings()));
    }
    let disks = json!({"system": "/dev/vda", "persistent": {"disk-9": {"path": "/dev/vdc", "lun": "3"}}});
    let networks = json!({"net": {"type": "manual", "ip": "10.0.0.5", "mac": "02:00:00:00:00:01"}});
    let script = json!([
        {"op": "registry.get", "id": "vm-1"},
        put(json!({"mbus": "{{0.ok.mbus}}", "env": "{{0.ok.env}}", "disks": disks, "networks": networks})),
    ]);
    assert_eq!(attach_disk_outcomes(&job, &script)[1].get("error"), None);
    let mut expected = settings();
    (expected["disks"], expected["networks"]) = (disks, networks);
    assert_eq!(server.get("vm-1"), Some(expected));
}

#[test]
fn a_guest_can_access_only_the_ids_of_its_call_and_those_that_the_policy_grants() {
    let dir = tempfile::tempdir().unwrap();
    let server = RegistryServer::start(dir.path());
    for id in ["vm-1", "vm-2", "granted-1"] {
        server.put(id, &settings());
    }
    let closed = job(server.section());
    let open = job(server.section()).policy(json!({"version": 1, "http": [], "registry": {"keys": ["granted-*"]}}));
    let script = json!([
        {"op": "registry.get", "id": "vm-2"}, {"op": "registry.put", "id": "vm-2", "settings": {}}, {"op": "registry.delete", "id": "vm-2"},
        {"op": "agent.attached", "key": "vm-2", "disk": "disk-1", "hint": "/dev/sdx"}, {"op": "agent.deleted", "key": "vm-2"},
        {"op": "registry.get", "id": "granted-1"}, {"op": "registry.get", "id": "../vm-1"}, {"op": "registry.get", "id": ".."}, {"op": "registry.get", "id": ""},
        {"op": "registry.get", "id": "granted-missing"},
    ]);
    let refused = attach_disk_outcomes(&closed, &script);
    for outcome in &refused[..3] {
        assert_eq!(outcome["error"]["kind"], "denied", "{outcome}");
        assert!(
            outcome["error"]["message"].as_str().unwrap().contains("the policy's `registry.keys` can grant more"),
            "{outcome}"
        );
    }
    for outcome in &refused[3..5] {
        assert_eq!(outcome["error"]["kind"], "refused", "{outcome}");
    }
    assert_eq!(refused[5]["error"]["kind"], "denied");
    for outcome in &refused[6..9] {
        assert_eq!(outcome["error"]["kind"], "invalid", "{outcome}");
    }
    let granted = attach_disk_outcomes(&open, &script);
    assert_eq!(granted[0]["error"]["kind"], "denied");
    assert_eq!(granted[5]["ok"]["agent_id"], "agent-1");
    assert_eq!(granted[9]["error"]["kind"], "not-found");
    assert_eq!(server.get("vm-2"), Some(settings()));
    // A disk cannot be attached if the registry has no settings for the VM.
    let missing = closed.call("attach_disk", json!(["vm-3", "disk-1"])).api_version(1).run();
    missing.fails(CLOUD_ERROR, &["the registry has no settings for `vm-3`"]);
}

#[test]
fn registry_kib_bounds_settings_in_both_directions() {
    let dir = tempfile::tempdir().unwrap();
    let server = RegistryServer::start(dir.path());
    let job = job(server.section()).limits(json!({"registry_kib": 4}));
    let remedy = "raise `limits.registry_kib` in the CPI's config";
    let mut large = settings();
    large["disks"]["persistent"]["padding"] = json!("x".repeat(5000));
    server.put("vm-1", &large);
    let script = json!([{"op": "registry.get", "id": "vm-1"}, {"op": "agent.attached", "key": "vm-1", "disk": "disk-1", "hint": "/dev/sdx"}]);
    for outcome in attach_disk_outcomes(&job, &script) {
        let message = outcome["error"]["message"].as_str().unwrap();
        assert!(message.contains("`registry_kib`") && message.contains(remedy), "{message}");
    }
    server.put("vm-1", &settings());
    let padded =
        json!({"op": "registry.put", "id": "vm-1", "settings": {"networks": {"net": {"padding": "x".repeat(5000)}}}});
    let message = attach_disk_outcomes(&job, &json!([padded]))[0]["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`registry_kib`") && message.contains(remedy), "{message}");
    // For a new VM, the limit is checked before the guest runs.
    let script = json!([{"op": "error", "kind": "cloud", "message": "the guest ran"}]);
    let env = json!({"bosh": {"certificates": "x".repeat(5000)}});
    let arguments = json!(["agent-1", "stemcell-1", {"probe": script}, tests::cloud::networks(), [], env]);
    job.call("create_vm", arguments).stemcell_api_version(1).run().fails(CLOUD_ERROR, &["`registry_kib` (4)", remedy]);
}

/// A guest that adds to settings until the limit is reached learns nothing about the rest of them.
#[test]
fn what_a_guest_may_add_to_settings_does_not_depend_on_their_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let server = RegistryServer::start(dir.path());
    let job = job(server.section()).limits(json!({"registry_kib": 4}));
    let fits = |password: &str| {
        let mut stored = settings();
        stored["env"] = json!({"bosh": {"password": password}});
        let attach = |length: usize| json!({"op": "agent.attached", "key": "vm-1", "disk": "disk-1", "hint": "x".repeat(length)});
        let lengths: Vec<usize> = (3300..4100).step_by(50).collect();
        let script: Vec<Value> = lengths.iter().map(|length| attach(*length)).collect();
        server.put("vm-1", &stored);
        let outcomes = attach_disk_outcomes(&job, &json!(script));
        outcomes.iter().map(|outcome| outcome["error"].is_null()).collect::<Vec<bool>>()
    };
    let (short, long) = (fits("short"), fits(&"a-much-longer-password".repeat(20)));
    assert_eq!(short, long);
    assert!(short.contains(&true) && short.contains(&false), "{short:?}");
}
