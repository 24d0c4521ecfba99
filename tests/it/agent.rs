//! Settings of the Agent: where they are stored for every combination of versions, and
//! that they have the form that the Agent decodes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::cloud::{create_vm, env, networks, post, vm_outcomes, with_policy};
use tests::registry_server::{self, RegistryServer};
use tests::response::CANARY;
use tests::servers::{Answer, Server, with};
use tests::{CLOUD_ERROR, CPI_ERROR, Job};

/// A cloud that accepts user-data, a registry, and a job that uses both.
struct Fixture {
    _dir: tempfile::TempDir,
    registry: RegistryServer,
    cloud: Server,
    job: Job,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let registry = RegistryServer::start(dir.path());
    let cloud = Server::answering(Answer::json(200, &json!({"id": "vm-1"})));
    let slot = json!([{"method": "POST", "path": "/vms", "place": "json:/user_data"}]);
    let grant = with(cloud.grant("cloud"), json!({"slots": slot, "plain_http": true}));
    let job = with_policy(json!({"http": [grant]})).configure(|config| {
        config["agent"] = agent();
        config["registry"] = registry.section();
    });
    Fixture { _dir: dir, registry, cloud, job }
}

fn agent() -> Value {
    json!({
        "mbus": format!("nats://nats:{CANARY}-mbus@10.0.0.6:4222"), "ntp": ["10.0.0.7", "ntp.test"],
        "blobstore": {"provider": "dav", "options": {"endpoint": "http://10.0.0.6:25250", "user": "agent", "password": format!("{CANARY}-blobs")}},
    })
}

fn bootstrap() -> Value {
    json!({
        "op": "agent.bootstrap", "vm_name": "the-name", "system_disk": "/dev/sda",
        "ephemeral_disk": {"path": "/dev/sdb", "lun": "1"}, "raw_ephemeral_disks": ["/dev/sdx", {"volume_id": "v-1"}],
        "networks": [{"name": "net", "mac": "02-AA-00-00-00-01", "use_dhcp": false, "preconfigured": true, "alias": "eth0:1",
                      "routes": [{"destination": "10.1.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.9"}]}],
        "encodings": ["base64"],
    })
}

/// Creates `vm-1` as a CPI does: user-data, then the settings in the registry. `Fixture::script`
/// adds the request to the cloud.
fn create_operations() -> Vec<Value> {
    vec![
        bootstrap(),
        json!({"op": "agent.created", "vm": "vm-1", "key": "vm-1"}),
        json!({"op": "result", "json": "vm-1"}),
    ]
}

impl Fixture {
    fn script(&self, mut operations: Vec<Value>) -> Value {
        operations.insert(1, post(&self.cloud.url("/vms"), &json!({"name": "vm-1", "user_data": "{{0.ok}}"})));
        json!(operations)
    }

    /// Returns the user-data that arrived last, without the marker in its first and last key.
    fn user_data(&self) -> Value {
        let body = self.cloud.requests().pop().unwrap().json();
        let text = String::from_utf8(STANDARD.decode(body["user_data"].as_str().unwrap()).unwrap()).unwrap();
        let mut data: Value = serde_json::from_str(&text).unwrap();
        assert!(text.starts_with("{\"_wasm-cpi-agent-settings-") && text.ends_with('}'), "{text}");
        let keys: Vec<String> = data.as_object().unwrap().keys().cloned().collect();
        let marked: Vec<&String> = keys.iter().filter(|key| key.contains("wasm-cpi-agent-settings-")).collect();
        assert_eq!(marked.len(), 2, "{keys:?}");
        assert!(
            text.trim_end_matches(['}', ' '])
                .ends_with(&format!("\"{}\":true", marked.iter().max_by_key(|key| key.len()).unwrap())),
            "{text}"
        );
        marked.iter().for_each(|key| drop(data.as_object_mut().unwrap().remove(key.as_str())));
        data
    }
}

/// Returns the `networks` of the Agent, including what the cloud added.
fn agent_networks() -> Value {
    let mut networks = networks();
    let added = json!({"mac": "02:aa:00:00:00:01", "routes": [{"destination": "10.1.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.9"}],
                       "alias": "eth0:1", "use_dhcp": false, "preconfigured": true});
    networks["net"] = with(networks["net"].clone(), added);
    networks
}

/// Returns all settings that the Agent needs, wherever they are stored.
fn all_settings() -> Value {
    json!({
        "agent_id": "agent-1", "vm": {"name": "the-name"}, "networks": agent_networks(),
        "disks": {"system": "/dev/sda", "ephemeral": {"path": "/dev/sdb", "lun": "1"}, "persistent": {},
                  "raw_ephemeral": [{"path": "/dev/sdx"}, {"VolumeID": "v-1"}]},
        "env": env(), "mbus": agent()["mbus"], "ntp": agent()["ntp"], "blobstore": agent()["blobstore"],
    })
}

/// The table of the CPI API v2 documentation: versions of Director, CPI and stemcell, and
/// whether settings go through the registry.
const TABLE: [(u32, u32, u32, bool); 8] = [
    (1, 1, 1, true),
    (1, 1, 2, true),
    (1, 2, 1, true),
    (1, 2, 2, true),
    (2, 1, 1, true),
    (2, 1, 2, true),
    (2, 2, 1, true),
    (2, 2, 2, false),
];

#[test]
fn the_versions_of_director_cpi_and_stemcell_decide_where_settings_are_stored() {
    check_table(|job| job);
}

#[test]
fn the_rendered_job_stores_settings_in_the_same_places() {
    check_table(Job::installed_from_release);
}

fn check_table(install: fn(Job) -> Job) {
    for (director, cpi, stemcell, through_registry) in TABLE {
        let row = format!("Director {director}, CPI {cpi}, stemcell {stemcell}");
        let mut fixture = fixture();
        fixture.job = install(fixture.job.configure(|config| config["debug"] = json!({"cpi": {"api_version": cpi}})));
        let info = fixture.job.call("info", json!([])).run();
        let used = director.min(u32::try_from(info.result()["api_version"].as_u64().unwrap()).unwrap());
        let call = |method: &str, arguments: Value| {
            fixture.job.call(method, arguments).api_version(used).stemcell_api_version(stemcell).run()
        };

        let created = create_vm(&fixture.job, &fixture.script(create_operations()))
            .api_version(used)
            .stemcell_api_version(stemcell)
            .run();
        match used {
            1 => assert_eq!(*created.result(), "vm-1", "{row}"),
            _ => assert_eq!(
                (&created.result()[0], &created.result()[1]["net"]["ip"]),
                (&json!("vm-1"), &json!("10.0.0.5")),
                "{row}"
            ),
        }
        let dns = json!({"nameserver": ["10.0.0.2"]});
        let user_data = match through_registry {
            false => with(all_settings(), json!({"dns": dns})),
            true => {
                let endpoint = format!("http://registry:{CANARY}-registry%3A%20%24%26@{}", fixture.registry.address());
                let registry =
                    json!({"endpoint": endpoint, "user": "registry", "password": registry_server::password()});
                json!({"dns": dns, "networks": agent_networks(), "registry": registry, "server": {"name": "the-name"}})
            }
        };
        assert_eq!(fixture.user_data(), user_data, "{row}");
        assert_eq!(fixture.registry.get("vm-1"), through_registry.then(all_settings), "{row}");

        let attached = call("attach_disk", json!(["vm-1", "disk-7"]));
        let hint = "/dev/disk/by-id/probe-";
        match used {
            1 => assert_eq!(*attached.result(), Value::Null, "{row}"),
            _ => assert!(attached.result().as_str().unwrap().starts_with(hint), "{row}"),
        }
        let stored = fixture.registry.get("vm-1");
        match through_registry {
            false => assert_eq!(stored, None, "{row}"),
            true => {
                let stored = stored.unwrap();
                let disks = stored["disks"].as_object().unwrap();
                assert!(disks["persistent"]["disk-7"].as_str().unwrap().starts_with(hint), "{row}: {stored}");
                let mut before = stored.clone();
                before["disks"]["persistent"] = json!({});
                assert_eq!(before, all_settings(), "{row}");
            }
        }
        assert_eq!(*call("detach_disk", json!(["vm-1", "disk-7"])).result(), Value::Null, "{row}");
        assert_eq!(fixture.registry.get("vm-1"), through_registry.then(all_settings), "{row}");
        assert_eq!(*call("delete_vm", json!(["vm-1"])).result(), Value::Null, "{row}");
        assert_eq!(fixture.registry.get("vm-1"), None, "{row}");
    }
}

#[test]
fn a_stemcell_without_a_version_uses_the_registry_and_version_2_and_later_do_not() {
    let fixture = fixture();
    let run = |api: u32, stemcell: Option<u32>| {
        create_vm(&fixture.job, &fixture.script(create_operations()))
            .api_version(api)
            .stemcell_api_version(stemcell)
            .run()
            .result();
        let stored = fixture.registry.get("vm-1").is_some();
        assert_eq!(fixture.user_data().get("registry").is_some(), stored);
        fixture.registry.ask("DELETE /instances/vm-1/settings", b"");
        stored
    };
    assert!(run(2, None) && run(3, None) && run(3, Some(1)));
    assert!(!run(3, Some(2)) && !run(2, Some(3)));
}

#[test]
fn user_data_names_the_agent_endpoint_of_the_registry_if_one_is_configured() {
    let mut fixture = fixture();
    fixture.job = fixture.job.configure(|config| config["registry"]["agent_endpoint"] = json!("http://10.0.0.6:25777"));
    create_vm(&fixture.job, &fixture.script(create_operations())).stemcell_api_version(1).run().result();
    assert_eq!(fixture.user_data()["registry"], json!({"endpoint": "http://10.0.0.6:25777"}));
}

#[test]
fn settings_without_an_agent_section_are_still_what_the_agent_decodes() {
    let mut fixture = fixture();
    fixture.job = fixture.job.configure(|config| drop(config.as_object_mut().unwrap().remove("agent")));
    let script = json!([{"op": "agent.bootstrap", "vm_name": "n", "encodings": ["base64"]}, post(&fixture.cloud.url("/vms"), &json!({"user_data": "{{0.ok}}"})), {"op": "result", "json": "vm-1"}]);
    create_vm(&fixture.job, &script).run().result();
    let expected = json!({
        "dns": {"nameserver": ["10.0.0.2"]}, "agent_id": "agent-1", "vm": {"name": "n"}, "networks": networks(),
        "disks": {"persistent": {}}, "env": env(), "ntp": [],
    });
    assert_eq!(fixture.user_data(), expected);
    // Keys that the contract does not name are kept, and so are unusual values.
    let odd = json!({"a b": {"type": "vip", "ip": "198.51.100.7", "nic_group": 1, "x": [null, {"y": 1.5}]}, "dyn": {"type": "dynamic", "cloud_properties": {}}});
    let arguments = json!(["agent-2", "stemcell-1", {"probe": script}, odd, [], {}]);
    fixture.job.call("create_vm", arguments).run().result();
    assert_eq!((&fixture.user_data()["networks"], &fixture.user_data()["env"]), (&odd, &json!({})));
}

#[test]
fn dynamic_networks_get_the_addresses_that_the_cloud_chose() {
    let fixture = fixture();
    let given = json!({"dyn": {"type": "dynamic", "cloud_properties": {}}, "net": networks()["net"]});
    let addition =
        json!({"name": "dyn", "ip": "10.9.0.4", "netmask": "255.255.0.0", "gateway": "10.9.0.1", "dns": ["10.9.0.2"]});
    let script = json!([
        {"op": "agent.bootstrap", "networks": [addition, {"name": "net", "ip": "10.0.0.5", "dns": ["10.0.0.2"]}], "encodings": ["base64"]},
        post(&fixture.cloud.url("/vms"), &json!({"user_data": "{{0.ok}}"})), {"op": "result", "json": "vm-1"},
    ]);
    fixture.job.call("create_vm", json!(["agent-1", "stemcell-1", {"probe": script}, given, [], {}])).run().result();
    let mut expected = given;
    expected["dyn"] = with(
        expected["dyn"].clone(),
        json!({"ip": "10.9.0.4", "netmask": "255.255.0.0", "gateway": "10.9.0.1", "dns": ["10.9.0.2"]}),
    );
    assert_eq!(fixture.user_data()["networks"], expected);
}

#[test]
fn additions_that_are_invalid_or_contradict_the_director_are_refused() {
    let fixture = fixture();
    let net = |keys: Value| json!({"networks": [with(json!({"name": "net"}), keys)]});
    let cases = [
        (net(json!({"ip": "10.0.0.6"})), "network `net`: `ip` was chosen by the Director and cannot be changed"),
        (net(json!({"netmask": "255.0.0.0"})), "`netmask` was chosen by the Director"),
        (net(json!({"gateway": "10.0.0.9"})), "`gateway` was chosen by the Director"),
        (net(json!({"dns": ["10.0.0.2", "10.0.0.3"]})), "`dns` was chosen by the Director"),
        (net(json!({"ip": "nonsense"})), "`ip` is not an IP address"),
        (net(json!({"mac": "02:aa:00:00:00"})), "`mac` must be six hexadecimal octets"),
        (net(json!({"routes": {"a": 1}})), "`routes` must be a JSON array of objects with string values"),
        (json!({"networks": [{"name": "other"}]}), "the call has no network `other`"),
        (json!({"networks": [{"name": "net"}, {"name": "net"}]}), "network `net` is given twice"),
        (json!({"ephemeral_disk": ""}), "a disk hint is empty"),
        (json!({"raw_ephemeral_disks": [{}]}), "a disk hint is empty"),
        (
            json!({"encodings": ["base64", "json-string", "base64url"]}),
            "one encoding twice, or with two kinds of base64",
        ),
        (json!({"system_disk": "x".repeat(5000)}), "but at most 4096 are allowed"),
    ];
    let script: Vec<Value> =
        cases.iter().map(|(keys, _)| with(json!({"op": "agent.bootstrap"}), keys.clone())).collect();
    let no_slot = with_policy(json!({"http": []})).configure(|config| config["agent"] = agent());
    let outcomes = vm_outcomes(&create_vm(&no_slot, &json!(script)).run());
    for ((keys, expected), outcome) in cases.iter().zip(&outcomes) {
        assert_eq!(outcome["error"]["kind"], "refused", "{keys}: {outcome}");
        assert!(outcome["error"]["message"].as_str().unwrap().contains(expected), "no `{expected}` in {outcome}");
    }
    assert_eq!(fixture.cloud.connections(), 0);
    // Only `create_vm` creates settings.
    let elsewhere = tests::cloud::outcome(&no_slot, bootstrap());
    assert_eq!(elsewhere["error"]["kind"], "refused", "{elsewhere}");
}

/// The guest learns nothing about the size of settings, so it is judged before the guest runs.
#[test]
fn settings_that_are_too_large_for_the_platform_are_refused_before_the_guest_runs() {
    let fixture = fixture();
    let limited = |max: u64| {
        let slot = json!([{"method": "POST", "path": "/vms", "place": "json:/user_data", "max_bytes": max}]);
        let grant = with(fixture.cloud.grant("cloud"), json!({"slots": slot, "plain_http": true}));
        with_policy(json!({"http": [grant]})).configure(|config| {
            config["agent"] = agent();
            config["registry"] = fixture.registry.section();
        })
    };
    let script = fixture.script(create_operations());
    let response = create_vm(&limited(5000), &script).run();
    let expected = [
        "the agent settings of this VM take up to ",
        "but at most 5000 are allowed (`max_bytes` of the policy's slot)",
        "the largest parts are `env` (",
    ];
    response.fails(CPI_ERROR, &expected);
    assert_eq!(fixture.cloud.connections(), 0);
    let fits: u64 = response.message().split("take up to ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    create_vm(&limited(fits - 1), &script).run().fails(CPI_ERROR, &["take up to"]);
    create_vm(&limited(fits), &script).run().result();
    let sent = fixture.cloud.requests().pop().unwrap().json()["user_data"].as_str().unwrap().len() as u64;
    assert!(sent <= fits, "{sent} bytes were sent, and {fits} were expected at most");
    // User-data that refers to the registry is smaller.
    create_vm(&limited(fits - 1), &script).stemcell_api_version(1).run().result();
}

/// Whatever a secret's length is, the server receives user-data of the same length.
#[test]
fn user_data_has_steps_of_one_kibibyte() {
    let fixture = fixture();
    let lengths: Vec<usize> = ["short", "a-much-longer-password-of-the-same-vm"]
        .iter()
        .map(|password| {
            let env = json!({"bosh": {"password": format!("{CANARY}-{password}")}});
            let arguments =
                json!(["agent-1", "stemcell-1", {"probe": fixture.script(create_operations())}, networks(), [], env]);
            fixture.job.call("create_vm", arguments).run().result();
            STANDARD
                .decode(fixture.cloud.requests().pop().unwrap().json()["user_data"].as_str().unwrap())
                .unwrap()
                .len()
        })
        .collect();
    assert!(lengths[0] == lengths[1] && lengths[0].is_multiple_of(1024), "{lengths:?}");
}

#[test]
fn a_create_vm_that_fails_leaves_nothing_in_the_registry() {
    let fixture = fixture();
    let created = |key: &str| json!({"op": "agent.created", "vm": "vm-1", "key": key});
    let ends = [
        (
            "an error",
            json!({"op": "error", "kind": "vm-creation-failed", "message": "no room", "ok_to_retry": true}),
            "no room",
        ),
        ("a trap", json!({"op": "trap"}), "unreachable"),
        ("an exit", json!({"op": "exit", "code": 0}), "exit"),
        (
            "another VM",
            json!({"op": "result", "json": "vm-2"}),
            "`create_vm` returned `vm-2` without calling `agent.created` for it",
        ),
        ("garbage", json!({"op": "garbage", "kind": "empty"}), "empty cloud ID"),
    ];
    for (name, end, expected) in ends {
        let script = fixture.script(vec![bootstrap(), created("vm-1"), created("name-1"), end]);
        let response = create_vm(&fixture.job, &script).stemcell_api_version(1).run();
        assert!(response.message().contains(expected), "{name}: {}", response.json);
        assert_eq!((fixture.registry.get("vm-1"), fixture.registry.get("name-1")), (None, None), "{name}");
    }
    // Another registry key, and two keys for one VM, are allowed.
    let script =
        fixture.script(vec![bootstrap(), created("vm-1"), created("name-1"), json!({"op": "result", "json": "vm-1"})]);
    create_vm(&fixture.job, &script).stemcell_api_version(1).run().result();
    assert_eq!(
        (fixture.registry.get("vm-1"), fixture.registry.get("name-1")),
        (Some(all_settings()), Some(all_settings()))
    );
}

#[test]
fn create_vm_writes_only_new_registry_keys_and_only_after_bootstrap() {
    let fixture = fixture();
    fixture.registry.put("taken", &json!({"agent_id": "of another VM"}));
    let error_of = |script: Vec<Value>, index: usize| {
        let mut script = script;
        script.push(json!({"op": "error", "kind": "cloud", "message": format!("{{{{{index}.error.kind}}}}: {{{{{index}.error.message}}}}")}));
        create_vm(&fixture.job, &json!(script)).stemcell_api_version(1).run().message().to_owned()
    };
    let created = |key: &str| json!({"op": "agent.created", "vm": "vm-1", "key": key});
    let taken = error_of(vec![bootstrap(), created("taken")], 1);
    assert!(taken.contains("refused: the registry already has settings for `taken`"), "{taken}");
    let early = error_of(vec![created("vm-1")], 0);
    assert!(early.contains("refused: settings are written after `agent.bootstrap`"), "{early}");
    for operation in [
        json!({"op": "registry.put", "id": "taken", "settings": {"disks": {}}}),
        json!({"op": "registry.delete", "id": "taken"}),
        json!({"op": "agent.deleted", "key": "taken"}),
        json!({"op": "agent.attached", "key": "taken", "disk": "disk-1", "hint": "/dev/sdx"}),
    ] {
        let refused = error_of(vec![bootstrap(), operation], 1);
        assert!(refused.contains("denied: ") || refused.contains("refused: "), "{refused}");
    }
    for key in ["", "..", "a/b", "a b", &"x".repeat(256)] {
        let invalid = error_of(vec![bootstrap(), created(key)], 1);
        assert!(invalid.contains("a registry ID must be 1 to 255 characters"), "{key}: {invalid}");
    }
    assert_eq!(fixture.registry.get("taken"), Some(json!({"agent_id": "of another VM"})));
    // The guest may change the settings that it wrote, and the changes stay.
    let script = fixture.script(vec![
        bootstrap(),
        created("vm-1"),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"disks": {"system": "/dev/vda", "persistent": {}}}}),
        json!({"op": "agent.attached", "key": "vm-1", "disk": "disk-1", "hint": {"path": "/dev/vdc"}}),
        json!({"op": "result", "json": "vm-1"}),
    ]);
    create_vm(&fixture.job, &script).stemcell_api_version(1).run().result();
    assert_eq!(
        fixture.registry.get("vm-1").unwrap()["disks"],
        json!({"system": "/dev/vda", "persistent": {"disk-1": {"path": "/dev/vdc"}}})
    );
}

#[test]
fn create_vm_with_a_registry_fails_if_the_guest_never_writes_settings() {
    let fixture = fixture();
    let script = fixture.script(vec![bootstrap(), json!({"op": "result", "json": "vm-1"})]);
    let response = create_vm(&fixture.job, &script).stemcell_api_version(1).run();
    response.fails(
        CLOUD_ERROR,
        &[
            "`create_vm` returned `vm-1` without calling `agent.created` for it",
            "the guest must call `agent.created` once the VM exists",
        ],
    );
    // A VM that needs no registry needs no `agent.created`.
    create_vm(&fixture.job, &script).run().result();
    let mut missing = fixture;
    missing.job = missing.job.configure(|config| config["registry"] = Value::Null);
    let script = missing.script(create_operations());
    create_vm(&missing.job, &script).stemcell_api_version(1).run().fails(CPI_ERROR, &["`registry` is missing"]);
    create_vm(&missing.job, &script).run().result();
    assert_eq!(missing.cloud.requests().len(), 3);
}

#[test]
fn a_create_vm_that_reaches_its_deadline_leaves_nothing_in_the_registry() {
    let mut fixture = fixture();
    fixture.job = fixture.job.limits(json!({"wall_seconds": 1, "cleanup_seconds": 1}));
    let sleep = json!({"op": "clock.sleep", "ms": 60_000});
    // One guest that ends when it is asked to, and one that has to be stopped.
    for (index, end) in [sleep, json!({"op": "loop"})].into_iter().enumerate() {
        let key = format!("key-{index}");
        let script = fixture.script(vec![
            bootstrap(),
            json!({"op": "agent.created", "vm": "vm-1", "key": key}),
            end,
            json!({"op": "error", "kind": "cloud"}),
        ]);
        let response = create_vm(&fixture.job, &script).stemcell_api_version(1).run();
        response.reaches("wall_seconds");
        assert_eq!(fixture.registry.get(&key), None, "{}", response.json);
    }
}

#[test]
fn a_create_vm_that_ends_after_a_leak_leaves_nothing_in_the_registry() {
    let mut fixture = fixture();
    let echo = Server::answering(Answer::ok("a secret of the job"));
    let policy = json!({"version": 1, "http": [echo.grant("echo")]});
    fixture.job = fixture.job.policy(policy).properties(json!({"password": "a secret of the job"}));
    let leak = json!({"op": "http", "url": echo.url("/")});
    let script = json!([bootstrap(), {"op": "agent.created", "vm": "vm-1", "key": "vm-1"}, leak, {"op": "result", "json": "vm-1"}]);
    create_vm(&fixture.job, &script)
        .stemcell_api_version(1)
        .run()
        .fails(CLOUD_ERROR, &["held the credential `password`"]);
    assert_eq!(fixture.registry.get("vm-1"), None);
}

#[test]
fn the_number_and_the_size_of_bootstrap_settings_are_bounded() {
    let job = with_policy(json!({"http": []})).configure(|config| config["agent"] = agent());
    let many = create_vm(&job, &json!([{"op": "agent.bootstrap", "repeat": 100}])).run();
    let outcome = &vm_outcomes(&many)[0];
    assert_eq!((&outcome["times"], &outcome["error"]["kind"]), (&json!(9), &json!("refused")), "{outcome}");
    let large = create_vm(&job, &json!([{"op": "agent.bootstrap", "vm_name": "x".repeat(2 << 20)}])).run();
    let outcome = &vm_outcomes(&large)[0];
    assert_eq!(outcome["error"]["kind"], "refused", "{}", outcome["error"]["kind"]);
}
