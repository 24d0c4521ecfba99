//! Settings of the Agent: where they land for every pair of versions, and that
//! they are what the Agent decodes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::cloud::{create_vm, env, networks, post, vm_outcomes, with_policy};
use tests::registry_server::{self, RegistryServer};
use tests::response::CANARY;
use tests::servers::{Answer, Server, with};
use tests::{CLOUD_ERROR, CPI_ERROR, Job};

/// A cloud that takes user-data, a registry, and a job for both.
struct Scene {
    _dir: tempfile::TempDir,
    registry: RegistryServer,
    cloud: Server,
    job: Job,
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let registry = RegistryServer::start(dir.path());
    let cloud = Server::answering(Answer::json(200, &json!({"id": "vm-1"})));
    let slot = json!([{"method": "POST", "path": "/vms", "place": "json:/user_data"}]);
    let grant = with(cloud.grant("cloud"), json!({"slots": slot, "plain_http": true}));
    let job = with_policy(json!({"http": [grant]})).configure(|config| {
        config["agent"] = agent();
        config["registry"] = registry.section();
    });
    Scene { _dir: dir, registry, cloud, job }
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

/// Makes `vm-1` as a CPI does: user-data, the cloud's request, the registry's part.
fn making() -> Vec<Value> {
    vec![
        bootstrap(),
        json!({"op": "agent.created", "vm": "vm-1", "key": "vm-1"}),
        json!({"op": "result", "json": "vm-1"}),
    ]
}

impl Scene {
    fn script(&self, mut operations: Vec<Value>) -> Value {
        operations.insert(1, post(&self.cloud.url("/vms"), &json!({"name": "vm-1", "user_data": "{{0.ok}}"})));
        json!(operations)
    }

    /// The user-data that arrived last.
    fn user_data(&self) -> Value {
        let body = self.cloud.requests().pop().unwrap().json();
        let text = STANDARD.decode(body["user_data"].as_str().unwrap()).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

/// The Agent's `networks`, with what the cloud added.
fn agent_networks() -> Value {
    let mut networks = networks();
    let added = json!({"mac": "02:aa:00:00:00:01", "routes": [{"destination": "10.1.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.9"}],
                       "alias": "eth0:1", "use_dhcp": false, "preconfigured": true});
    networks["net"] = with(networks["net"].clone(), added);
    networks
}

/// All that the Agent needs, wherever it is.
fn full() -> Value {
    json!({
        "agent_id": "agent-1", "vm": {"name": "the-name"}, "networks": agent_networks(),
        "disks": {"system": "/dev/sda", "ephemeral": {"path": "/dev/sdb", "lun": "1"}, "persistent": {},
                  "raw_ephemeral": [{"path": "/dev/sdx"}, {"VolumeID": "v-1"}]},
        "env": env(), "mbus": agent()["mbus"], "ntp": agent()["ntp"], "blobstore": agent()["blobstore"],
    })
}

/// The table of the v2 document: versions of Director, CPI and stemcell, and
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
fn settings_land_where_the_versions_of_director_cpi_and_stemcell_say() {
    check_table(|job| job);
}

#[test]
fn the_job_of_the_release_agrees_about_all_of_them() {
    check_table(Job::released);
}

fn check_table(changed: fn(Job) -> Job) {
    for (director, cpi, stemcell, through_registry) in TABLE {
        let row = format!("Director {director}, CPI {cpi}, stemcell {stemcell}");
        let mut scene = scene();
        scene.job = changed(scene.job.configure(|config| config["debug"] = json!({"cpi": {"api_version": cpi}})));
        let info = scene.job.call("info", json!([])).run();
        let used = director.min(u32::try_from(info.result()["api_version"].as_u64().unwrap()).unwrap());
        let call = |method: &str, arguments: Value| {
            scene.job.call(method, arguments).api_version(used).stemcell(stemcell).run()
        };

        let created = create_vm(&scene.job, &scene.script(making())).api_version(used).stemcell(stemcell).run();
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
            false => with(full(), json!({"dns": dns})),
            true => {
                let endpoint = format!("http://registry:{CANARY}-registry%3A%20%24%26@{}", scene.registry.address());
                let registry =
                    json!({"endpoint": endpoint, "user": "registry", "password": registry_server::password()});
                json!({"dns": dns, "networks": agent_networks(), "registry": registry, "server": {"name": "the-name"}})
            }
        };
        assert_eq!(scene.user_data(), user_data, "{row}");
        assert_eq!(scene.registry.get("vm-1"), through_registry.then(full), "{row}");

        let attached = call("attach_disk", json!(["vm-1", "disk-7"]));
        let hint = "/dev/disk/by-id/probe-";
        match used {
            1 => assert_eq!(*attached.result(), Value::Null, "{row}"),
            _ => assert!(attached.result().as_str().unwrap().starts_with(hint), "{row}"),
        }
        let stored = scene.registry.get("vm-1");
        match through_registry {
            false => assert_eq!(stored, None, "{row}"),
            true => {
                let stored = stored.unwrap();
                let disks = stored["disks"].as_object().unwrap();
                assert!(disks["persistent"]["disk-7"].as_str().unwrap().starts_with(hint), "{row}: {stored}");
                let mut before = stored.clone();
                before["disks"]["persistent"] = json!({});
                assert_eq!(before, full(), "{row}");
            }
        }
        assert_eq!(*call("detach_disk", json!(["vm-1", "disk-7"])).result(), Value::Null, "{row}");
        assert_eq!(scene.registry.get("vm-1"), through_registry.then(full), "{row}");
        assert_eq!(*call("delete_vm", json!(["vm-1"])).result(), Value::Null, "{row}");
        assert_eq!(scene.registry.get("vm-1"), None, "{row}");
    }
}

#[test]
fn a_stemcell_that_does_not_say_is_of_version_1_and_newer_ones_need_no_registry() {
    let scene = scene();
    let run = |api: u32, stemcell: Option<u32>| {
        create_vm(&scene.job, &scene.script(making())).api_version(api).stemcell(stemcell).run().result();
        let stored = scene.registry.get("vm-1").is_some();
        assert_eq!(scene.user_data().get("registry").is_some(), stored);
        scene.registry.ask("DELETE /instances/vm-1/settings", b"");
        stored
    };
    assert!(run(2, None) && run(3, None) && run(3, Some(1)));
    assert!(!run(3, Some(2)) && !run(2, Some(3)));
}

#[test]
fn agents_find_the_registry_under_their_own_endpoint_if_it_has_one() {
    let mut scene = scene();
    scene.job = scene.job.configure(|config| config["registry"]["agent_endpoint"] = json!("http://10.0.0.6:25777"));
    create_vm(&scene.job, &scene.script(making())).stemcell(1).run().result();
    assert_eq!(scene.user_data()["registry"], json!({"endpoint": "http://10.0.0.6:25777"}));
}

#[test]
fn without_an_agent_section_and_additions_settings_are_still_what_the_agent_decodes() {
    let mut scene = scene();
    scene.job = scene.job.configure(|config| drop(config.as_object_mut().unwrap().remove("agent")));
    let script = json!([{"op": "agent.bootstrap", "vm_name": "n", "encodings": ["base64"]}, post(&scene.cloud.url("/vms"), &json!({"user_data": "{{0.ok}}"})), {"op": "result", "json": "vm-1"}]);
    create_vm(&scene.job, &script).run().result();
    let expected = json!({
        "dns": {"nameserver": ["10.0.0.2"]}, "agent_id": "agent-1", "vm": {"name": "n"}, "networks": networks(),
        "disks": {"persistent": {}}, "env": env(), "ntp": [],
    });
    assert_eq!(scene.user_data(), expected);
    // Keys that the contract does not name survive, as do odd values.
    let odd = json!({"a b": {"type": "vip", "ip": "198.51.100.7", "nic_group": 1, "x": [null, {"y": 1.5}]}, "dyn": {"type": "dynamic", "cloud_properties": {}}});
    let arguments = json!(["agent-2", "stemcell-1", {"probe": script}, odd, [], {}]);
    scene.job.call("create_vm", arguments).run().result();
    assert_eq!((&scene.user_data()["networks"], &scene.user_data()["env"]), (&odd, &json!({})));
}

#[test]
fn dynamic_networks_take_what_the_cloud_chose() {
    let scene = scene();
    let given = json!({"dyn": {"type": "dynamic", "cloud_properties": {}}, "net": networks()["net"]});
    let addition =
        json!({"name": "dyn", "ip": "10.9.0.4", "netmask": "255.255.0.0", "gateway": "10.9.0.1", "dns": ["10.9.0.2"]});
    let script = json!([
        {"op": "agent.bootstrap", "networks": [addition, {"name": "net", "ip": "10.0.0.5", "dns": ["10.0.0.2"]}], "encodings": ["base64"]},
        post(&scene.cloud.url("/vms"), &json!({"user_data": "{{0.ok}}"})), {"op": "result", "json": "vm-1"},
    ]);
    scene.job.call("create_vm", json!(["agent-1", "stemcell-1", {"probe": script}, given, [], {}])).run().result();
    let mut expected = given;
    expected["dyn"] = with(
        expected["dyn"].clone(),
        json!({"ip": "10.9.0.4", "netmask": "255.255.0.0", "gateway": "10.9.0.1", "dns": ["10.9.0.2"]}),
    );
    assert_eq!(scene.user_data()["networks"], expected);
}

#[test]
fn what_a_guest_must_not_add_is_refused() {
    let scene = scene();
    let net = |keys: Value| json!({"networks": [with(json!({"name": "net"}), keys)]});
    let cases = [
        (net(json!({"ip": "10.0.0.6"})), "network `net`: `ip` was decided by the Director and cannot be changed"),
        (net(json!({"netmask": "255.0.0.0"})), "`netmask` was decided by the Director"),
        (net(json!({"gateway": "10.0.0.9"})), "`gateway` was decided by the Director"),
        (net(json!({"dns": ["10.0.0.2", "10.0.0.3"]})), "`dns` was decided by the Director"),
        (net(json!({"ip": "nonsense"})), "`ip` is not an IP address"),
        (net(json!({"mac": "02:aa:00:00:00"})), "`mac` must be six hexadecimal octets"),
        (net(json!({"routes": {"a": 1}})), "`routes` must be a JSON array of objects with string values"),
        (json!({"networks": [{"name": "other"}]}), "the call has no network `other`"),
        (json!({"networks": [{"name": "net"}, {"name": "net"}]}), "network `net` is given twice"),
        (json!({"ephemeral_disk": ""}), "a disk hint is empty"),
        (json!({"raw_ephemeral_disks": [{}]}), "a disk hint is empty"),
        (json!({"encodings": ["base64", "base64", "base64", "base64", "base64"]}), "more than four encodings"),
    ];
    let script: Vec<Value> =
        cases.iter().map(|(keys, _)| with(json!({"op": "agent.bootstrap"}), keys.clone())).collect();
    let no_slot = with_policy(json!({"http": []})).configure(|config| config["agent"] = agent());
    let outcomes = vm_outcomes(&create_vm(&no_slot, &json!(script)).run());
    for ((keys, said), outcome) in cases.iter().zip(&outcomes) {
        assert_eq!(outcome["error"]["kind"], "refused", "{keys}: {outcome}");
        assert!(outcome["error"]["message"].as_str().unwrap().contains(said), "no `{said}` in {outcome}");
    }
    assert_eq!(scene.cloud.connections(), 0);
    // Settings are made in `create_vm` alone.
    let elsewhere = tests::cloud::outcome(&no_slot, bootstrap());
    assert_eq!(elsewhere["error"]["kind"], "refused", "{elsewhere}");
}

#[test]
fn settings_that_are_too_large_for_the_platform_are_refused_with_their_largest_parts() {
    let scene = scene();
    let large = |max: u64| json!([with(bootstrap(), json!({"max_bytes": max})), post(&scene.cloud.url("/vms"), &json!({"user_data": "{{0.ok}}"})), {"op": "result", "json": "vm-1"}]);
    create_vm(&scene.job, &large(100_000)).run().result();
    let fits = scene.cloud.requests().pop().unwrap().json()["user_data"].as_str().unwrap().len() as u64;
    create_vm(&scene.job, &large(fits)).run().result();
    let refused = json!([with(bootstrap(), json!({"max_bytes": fits - 1})), {"op": "error", "kind": "cloud", "message": "{{0.error.message}}"}]);
    let response = create_vm(&scene.job, &refused).run();
    let said = [
        &format!("the agent settings take {fits} bytes as user-data, and the platform takes {}", fits - 1),
        "the largest parts before encoding are `networks` (",
        "make them smaller in the deployment or in the CPI's config",
    ];
    response.fails(CLOUD_ERROR, &said.map(|part: &str| part));
    // In the registry's form they are smaller.
    create_vm(
        &scene.job,
        &scene.script(vec![
            with(bootstrap(), json!({"max_bytes": fits - 1})),
            making()[1].clone(),
            making()[2].clone(),
        ]),
    )
    .stemcell(1)
    .run()
    .result();
}

#[test]
fn a_create_vm_that_fails_leaves_nothing_in_the_registry() {
    let scene = scene();
    let created = |key: &str| json!({"op": "agent.created", "vm": "vm-1", "key": key});
    let ends = [
        (
            "an error",
            json!({"op": "error", "kind": "vm-creation-failed", "message": "no room", "retry": true}),
            "no room",
        ),
        ("a trap", json!({"op": "trap"}), "unreachable"),
        ("an exit", json!({"op": "exit", "code": 0}), "exit"),
        (
            "another VM",
            json!({"op": "result", "json": "vm-2"}),
            "`create_vm` returned `vm-2` without `agent.created` for it",
        ),
        ("garbage", json!({"op": "garbage", "kind": "empty"}), "empty cloud ID"),
    ];
    for (name, end, said) in ends {
        let script = scene.script(vec![bootstrap(), created("vm-1"), created("name-1"), end]);
        let response = create_vm(&scene.job, &script).stemcell(1).run();
        assert!(response.message().contains(said), "{name}: {}", response.json);
        assert_eq!((scene.registry.get("vm-1"), scene.registry.get("name-1")), (None, None), "{name}");
    }
    // A registry key of its own, and two for one VM, are fine.
    let script =
        scene.script(vec![bootstrap(), created("vm-1"), created("name-1"), json!({"op": "result", "json": "vm-1"})]);
    create_vm(&scene.job, &script).stemcell(1).run().result();
    assert_eq!((scene.registry.get("vm-1"), scene.registry.get("name-1")), (Some(full()), Some(full())));
}

#[test]
fn create_vm_writes_only_what_is_new_and_after_bootstrap() {
    let scene = scene();
    scene.registry.put("taken", &json!({"agent_id": "of another VM"}));
    let told = |script: Vec<Value>, index: usize| {
        let mut script = script;
        script.push(json!({"op": "error", "kind": "cloud", "message": format!("{{{{{index}.error.kind}}}}: {{{{{index}.error.message}}}}")}));
        create_vm(&scene.job, &json!(script)).stemcell(1).run().message().to_owned()
    };
    let created = |key: &str| json!({"op": "agent.created", "vm": "vm-1", "key": key});
    let taken = told(vec![bootstrap(), created("taken")], 1);
    assert!(taken.contains("refused: the registry already has settings for `taken`"), "{taken}");
    let early = told(vec![created("vm-1")], 0);
    assert!(early.contains("refused: settings are written after `agent.bootstrap`"), "{early}");
    for operation in [
        json!({"op": "registry.put", "id": "taken", "settings": {"disks": {}}}),
        json!({"op": "registry.delete", "id": "taken"}),
        json!({"op": "agent.deleted", "key": "taken"}),
        json!({"op": "agent.attached", "key": "taken", "disk": "disk-1", "hint": "/dev/sdx"}),
    ] {
        let refused = told(vec![bootstrap(), operation], 1);
        assert!(refused.contains("denied: ") || refused.contains("refused: "), "{refused}");
    }
    for key in ["", "..", "a/b", "a b", &"x".repeat(256)] {
        let invalid = told(vec![bootstrap(), created(key)], 1);
        assert!(invalid.contains("a registry ID must be 1 to 255 characters"), "{key}: {invalid}");
    }
    assert_eq!(scene.registry.get("taken"), Some(json!({"agent_id": "of another VM"})));
    // Its own it may change, and what it changed is kept with the VM.
    let script = scene.script(vec![
        bootstrap(),
        created("vm-1"),
        json!({"op": "registry.put", "id": "vm-1", "settings": {"disks": {"system": "/dev/vda", "persistent": {}}}}),
        json!({"op": "agent.attached", "key": "vm-1", "disk": "disk-1", "hint": {"path": "/dev/vdc"}}),
        json!({"op": "result", "json": "vm-1"}),
    ]);
    create_vm(&scene.job, &script).stemcell(1).run().result();
    assert_eq!(
        scene.registry.get("vm-1").unwrap()["disks"],
        json!({"system": "/dev/vda", "persistent": {"disk-1": {"path": "/dev/vdc"}}})
    );
}

#[test]
fn a_vm_of_the_registry_form_needs_its_settings_written() {
    let scene = scene();
    let script = scene.script(vec![bootstrap(), json!({"op": "result", "json": "vm-1"})]);
    let response = create_vm(&scene.job, &script).stemcell(1).run();
    response.fails(
        CLOUD_ERROR,
        &["`create_vm` returned `vm-1` without `agent.created` for it", "the guest must call it once the VM exists"],
    );
    // Without a registry it needs none, and says so to nobody.
    create_vm(&scene.job, &script).run().result();
    let mut missing = scene;
    missing.job = missing.job.configure(|config| config["registry"] = Value::Null);
    let script = missing.script(making());
    create_vm(&missing.job, &script).stemcell(1).run().fails(CPI_ERROR, &["`registry` is missing"]);
    create_vm(&missing.job, &script).run().result();
    assert_eq!(missing.cloud.requests().len(), 3);
}

#[test]
fn a_create_vm_that_is_stopped_leaves_nothing_in_the_registry_either() {
    let mut scene = scene();
    scene.job = scene.job.limits(json!({"wall_seconds": 1, "cleanup_seconds": 1}));
    let sleep = json!({"op": "clock.sleep", "ms": 60_000});
    // One that listens, and one that has to be stopped.
    for (index, end) in [sleep, json!({"op": "loop"})].into_iter().enumerate() {
        let key = format!("key-{index}");
        let script = scene.script(vec![
            bootstrap(),
            json!({"op": "agent.created", "vm": "vm-1", "key": key}),
            end,
            json!({"op": "error", "kind": "cloud"}),
        ]);
        let response = create_vm(&scene.job, &script).stemcell(1).run();
        response.reaches("wall_seconds");
        assert_eq!(scene.registry.get(&key), None, "{}", response.json);
    }
}

#[test]
fn a_create_vm_that_is_ended_for_its_leaks_leaves_nothing_in_the_registry() {
    let mut scene = scene();
    let echo = Server::answering(Answer::ok("a secret of the job"));
    let policy = json!({"version": 1, "http": [echo.grant("echo")]});
    scene.job = scene.job.policy(policy).properties(json!({"p": "a secret of the job"}));
    let leak = json!({"op": "http", "url": echo.url("/")});
    let script = json!([bootstrap(), {"op": "agent.created", "vm": "vm-1", "key": "vm-1"}, leak, leak, {"op": "result", "json": "vm-1"}]);
    create_vm(&scene.job, &script).stemcell(1).run().fails(CLOUD_ERROR, &["2 answers held secrets"]);
    assert_eq!(scene.registry.get("vm-1"), None);
}

#[test]
fn settings_are_neither_made_without_end_nor_without_bounds() {
    let job = with_policy(json!({"http": []})).configure(|config| config["agent"] = agent());
    let many = create_vm(&job, &json!([{"op": "agent.bootstrap", "repeat": 100}])).run();
    let outcome = &vm_outcomes(&many)[0];
    assert_eq!((&outcome["times"], &outcome["error"]["kind"]), (&json!(17), &json!("refused")), "{outcome}");
    let large = create_vm(&job, &json!([{"op": "agent.bootstrap", "vm_name": "x".repeat(2 << 20)}])).run();
    let outcome = &vm_outcomes(&large)[0];
    assert_eq!(outcome["error"]["kind"], "refused", "{}", outcome["error"]["kind"]);
}
