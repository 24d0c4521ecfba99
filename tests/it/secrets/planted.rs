//! Random secrets in every field that can hold one. Whatever happens, none of
//! them is in any output, nor in the memory of the guest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::Command;
use tests::cloud::{answered, networks, vm_outcomes, with_policy};
use tests::registry::Registry;
use tests::servers::{Answer, Server, with};
use tests::{Job, Response, dist, probe, process};

#[derive(Default)]
struct Garden(RefCell<Vec<String>>);

impl Garden {
    /// A new secret.
    fn plant(&self) -> String {
        let number = || RandomState::new().build_hasher().finish();
        let secret = format!("pl{:x}Ant{:x}ed", number(), number());
        self.0.borrow_mut().push(secret.clone());
        secret
    }

    #[track_caller]
    fn is_not_in(&self, text: &str) {
        for secret in self.0.borrow().iter() {
            let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
            for form in [secret.clone(), hex, STANDARD_NO_PAD.encode(secret)[..20].to_owned()] {
                assert!(!text.contains(&form), "{form} in {text}");
            }
        }
    }

    #[track_caller]
    fn checked(&self, response: &Response) {
        self.is_not_in(&response.json.to_string());
        self.is_not_in(&response.stderr);
    }

    /// Operations that look for every secret in the guest's memory.
    fn finds(&self) -> Vec<Value> {
        let reversed = |secret: &String| json!({"op": "find", "reversed": secret.chars().rev().collect::<String>()});
        self.0.borrow().iter().map(reversed).collect()
    }
}

struct Scene {
    garden: Garden,
    job: Job,
    cloud: Server,
    registry: Registry,
    context: Value,
    env: Value,
}

fn scene() -> Scene {
    let garden = Garden::default();
    let token = garden.plant();
    let captured = garden.plant();
    let cloud = Server::start(move |seen| match seen.target() {
        "/tokens" => Answer::json(200, &json!({"token": token, "catalog": "shown"})),
        "/capture" => Answer::json(200, &json!({"key": captured})),
        "/down" => Answer::new(503, "try later"),
        "/broken" => Answer::bytes("nonsense"),
        _ => Answer::json(200, &json!({"id": "vm-1", "adminPass": token})),
    });
    let registry = Registry::start();
    let stored = json!({
        "agent_id": "agent-1", "vm": {"name": "vm-1"}, "mbus": format!("nats://n:{}@10.0.0.6:4222", garden.plant()),
        "env": {"bosh": {"password": garden.plant()}}, "blobstore": {"options": {"secret_access_key": garden.plant()}},
        "disks": {"system": "/dev/sda", "persistent": {}}, "networks": {},
    });
    registry.put("vm-1", &stored);
    let api = json!({
        "auth": {"login": "main"}, "plain_http": true, "paths": ["/vms", "/down", "/broken", "/capture"],
        "slots": [{"method": "POST", "path": "/vms", "place": "json:/user_data"}],
        "captures": [{"method": "POST", "path": "/capture", "place": "json:/key", "as": "key"}],
    });
    let basic = with(
        cloud.grant("basic"),
        json!({"paths": ["/basic"], "plain_http": true, "auth": {"basic": {"user": "${user}", "password": "${nested.list.password}"}}}),
    );
    let job = with_policy(json!({
        "logins": {"main": {
            "to": cloud.origin(), "path": "/tokens", "addresses": ["127.0.0.0/8"], "plain_http": true, "token": "json:/token",
            "body": {"password": "${password}"}, "headers": {"X-Other": "${api_key}"}, "send": {"header": "X-Auth-Token"}, "show": {"catalog": "json:/catalog"},
        }},
        "http": [with(cloud.grant("api"), api), basic],
    }));
    let mut section = registry.section();
    section["agent_endpoint"] = json!(format!("http://agent:{}@10.0.0.6:25777", garden.plant()));
    let job = job
        .properties(json!({"user": "admin", "password": garden.plant(), "api_key": garden.plant(),
                           "nested": {"list": {"password": garden.plant()}, "deep": [[garden.plant()], {"a": garden.plant()}]}}))
        .configure(|config| {
            config["agent"] = json!({"mbus": format!("nats://nats:{}@10.0.0.6:4222", garden.plant()), "ntp": ["10.0.0.7"],
                "blobstore": {"provider": "s3", "options": {"access_key_id": garden.plant(), "secret_access_key": garden.plant(), "credentials": {"deep": garden.plant()}}}});
            config["registry"] = section;
            config["log"] = json!({"level": "debug"});
            config["http_trace"] = json!("bodies");
            config["audit"] = json!({"path": "../audit.log"});
        });
    let context = json!({"cpi_password": garden.plant(), "cpi": {"keys": [garden.plant()], "private_key": format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----", garden.plant(), garden.plant())}});
    let env = json!({"bosh": {"group": "g", "tags": {"t": "v"}, "password": garden.plant(), "mbus": {"cert": {"private_key": garden.plant()}}, "blobstores": [{"options": {"password": garden.plant()}}]}, "other": {"secret": garden.plant()}});
    Scene { garden, job, cloud, registry, context, env }
}

impl Scene {
    fn call(&self, method: &str, arguments: Value, versions: (u32, u32)) -> Response {
        let call = self.job.call(method, arguments).api_version(versions.0).stemcell(versions.1);
        let context = self.context.as_object().unwrap().iter();
        let response = context.fold(call, |call, (key, value)| call.context(key, value.clone())).run();
        self.garden.checked(&response);
        let lines = tests::audit::lines(&self.job);
        self.garden.is_not_in(&json!(lines).to_string());
        response
    }

    fn create_vm(&self, script: &Value, versions: (u32, u32)) -> Response {
        self.call("create_vm", json!(["agent-1", "stemcell-1", {"probe": script}, networks(), [], self.env]), versions)
    }
}

#[test]
fn the_whole_life_of_a_vm_shows_no_secret() {
    let scene = scene();
    let url = |path: &str| scene.cloud.url(path);
    let headers = json!({"Content-Type": "application/json"});
    let mut script = vec![
        json!({"op": "config"}),
        json!({"op": "agent.bootstrap", "vm_name": "vm-2", "encodings": ["base64"]}),
        json!({"op": "http", "method": "POST", "url": url("/vms"), "headers": headers, "body": {"user_data": "{{1.ok}}"}}),
        json!({"op": "http", "method": "POST", "url": url("/capture")}),
        json!({"op": "http", "url": url("/basic")}),
        json!({"op": "session", "name": "main"}),
        json!({"op": "log", "level": "debug", "message": "{{0.ok|json}} {{2.ok|json}} {{3.ok|json}} {{args.env|json}}"}),
        json!({"op": "print", "text": "{{0.ok|base64}} {{3.ok|hex}}"}),
    ];
    script.extend(scene.garden.finds());
    for versions in [(2, 2), (2, 1)] {
        let mut script = script.clone();
        if versions.1 == 1 {
            script.push(json!({"op": "agent.created", "vm": "vm-2", "key": "vm-2"}));
            script.push(json!({"op": "registry.get", "id": "vm-2"}));
        }
        let mut ended = script.clone();
        if versions.1 == 2 {
            let outcomes = vm_outcomes(&scene.create_vm(&json!(script), versions));
            answered(&outcomes[2], 200);
            answered(&outcomes[3], 200);
            answered(&outcomes[4], 200);
            assert_eq!(outcomes[5]["ok"], json!({"catalog": "shown"}));
            let found = outcomes.iter().filter(|outcome| outcome["op"] == "find");
            found.for_each(|outcome| assert_eq!(outcome["ok"]["count"], 0, "{outcome}"));
        }
        ended.push(json!({"op": "result", "json": "vm-2"}));
        let made = scene.create_vm(&json!(ended), versions);
        assert_eq!(made.result()[0], "vm-2");
        if versions.1 == 1 {
            assert_eq!(scene.registry.get("vm-2").unwrap()["agent_id"], "agent-1");
        }
        // All ways to fail.
        for end in [
            json!({"op": "panic", "message": "{{0.ok|json}} {{1.ok}}"}),
            json!({"op": "error", "kind": "cloud", "message": "{{0.ok|json}} {{1.ok|base64}}"}),
            json!({"op": "trap"}),
            json!({"op": "exit", "code": 1}),
            json!({"op": "garbage", "kind": "nul"}),
            json!({"op": "http", "url": "nonsense {{1.ok}}"}),
        ] {
            let mut script = script.clone();
            script.push(end);
            scene.create_vm(&json!(script), versions);
        }
    }
    let sent = scene.cloud.requests().into_iter().find(|seen| seen.target() == "/vms").unwrap();
    assert!(sent.length > 100);
}

#[test]
fn the_registrys_settings_and_failing_servers_show_no_secret() {
    let scene = scene();
    let url = |path: &str| scene.cloud.url(path);
    let mut script = vec![
        json!({"op": "registry.get", "id": "vm-1"}),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"mbus": "{{0.ok.mbus}}", "disks": {"system": "/dev/sda", "persistent": {"disk-1": "/dev/sdc"}}}}),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"mbus": "mine"}}),
        json!({"op": "registry.get", "id": "vm-other"}),
        json!({"op": "http", "url": url("/down")}),
        json!({"op": "http", "url": url("/broken")}),
        json!({"op": "http", "url": url("/denied?{{0.ok.mbus}}")}),
        json!({"op": "http", "url": url("/vms?{{0.ok.mbus}}")}),
        json!({"op": "log", "message": "{{0.ok|json}}"}),
    ];
    script.extend(scene.garden.finds());
    // The script stands in the disk's ID, and the VM's is the registry's key.
    let response = scene.call("attach_disk", json!(["vm-1", probe::cid(&json!(script))]), (1, 1));
    let outcomes = probe::outcomes_in(response.message());
    assert_eq!(outcomes[0]["ok"]["mbus"], "<sealed:registry.mbus>", "{}", outcomes[0]);
    assert_eq!(outcomes[0]["ok"]["disks"]["system"], "/dev/sda");
    assert_eq!(outcomes[1]["ok"], Value::Null, "{}", outcomes[1]);
    assert_eq!(outcomes[2]["error"]["kind"], "invalid");
    assert_eq!(outcomes[3]["error"]["kind"], "denied");
    let found = outcomes.iter().filter(|outcome| outcome["op"] == "find");
    found.for_each(|outcome| assert_eq!(outcome["ok"]["count"], 0, "{outcome}"));
    let stored = scene.registry.get("vm-1").unwrap();
    assert_eq!(stored["disks"]["persistent"], json!({"disk-1": "/dev/sdc"}));
    assert!(stored["mbus"].as_str().unwrap().starts_with("nats://n:pl"));
    for method in ["delete_vm", "reboot_vm", "has_vm"] {
        scene.call(method, json!(["vm-1"]), (1, 1));
    }
}

#[test]
fn the_tools_commands_show_no_secret() {
    let scene = scene();
    let config = scene.job.config_file();
    let script = json!({"probe": [{"op": "config"}, {"op": "http", "url": scene.cloud.url("/basic")}, {"op": "http", "url": scene.cloud.url("/broken")}]});
    let (script, guest) = (script.to_string(), dist::probe().to_string_lossy().into_owned());
    for arguments in [
        vec!["check", "--config", config.to_str().unwrap()],
        vec!["inspect", &guest, "--config", config.to_str().unwrap()],
        vec!["call", "create_disk", "1024", &script, "null", "--config", config.to_str().unwrap()],
        vec!["call", "has_vm", "gone", "--config", config.to_str().unwrap()],
        vec!["call", "no_such_method", "--config", config.to_str().unwrap()],
    ] {
        let finished = process::run(Command::new(dist::tool()).args(&arguments), b"", process::GUARD);
        let (out, err) = (String::from_utf8_lossy(&finished.stdout), String::from_utf8_lossy(&finished.stderr));
        assert!(!out.is_empty() || !err.is_empty(), "{arguments:?}");
        scene.garden.is_not_in(&out);
        scene.garden.is_not_in(&err);
    }
}

#[test]
fn broken_files_are_not_quoted() {
    let scene = scene();
    let config = std::fs::read_to_string(scene.job.config_file()).unwrap();
    let with_key = |key: &str, value: Value| {
        let mut changed: Value = serde_json::from_str(&config).unwrap();
        *changed.pointer_mut(key).unwrap() = value;
        changed.to_string()
    };
    let secret = scene.garden.plant();
    let broken = [
        config.replacen('{', "{{", 1),
        config[..config.len() / 2].to_owned(),
        config.replace("\"mbus\"", "\"mbuss\""),
        with_key("/registry/password", json!([secret])),
        with_key("/registry/endpoint", json!(format!("http://u:{secret}@h"))),
        with_key("/agent/mbus", json!({"a": secret})),
        with_key("/properties", json!(secret)),
        with_key("/agent/ntp", json!(secret)),
    ];
    for text in broken {
        tests::job::write(&scene.job.config_file(), text.as_bytes());
        let response = scene.job.script(json!([])).run();
        scene.garden.checked(&response);
        response.fails(tests::CPI_ERROR, &["cpi.json"]);
    }
}
