use wasm_cpi_sdk::fake::{Answer, Fake};
use wasm_cpi_sdk::{DiskHint, ErrorKind, NetworkSpec, RetryAdvice, VmSize};

use super::*;

fn spec(script: Value) -> NetworkSpec {
    let cloud_properties = Json::from(json!({"probe": script}));
    NetworkSpec { kind: "manual".into(), cloud_properties, range: None, gateway: None, netmask_bits: None }
}

const SIZE: VmSize = VmSize { ram_mib: 1, cpu: 1, ephemeral_disk_mb: 1 };

#[test]
fn new_cloud_ids_hold_the_outcomes() {
    let _host = Fake::new().install();
    let script = json!([{"op": "log", "message": "m"}]);
    let seen = json!([{"op": "log", "ok": null}]);
    let tags = vec![("probe".to_owned(), script.to_string())];
    let properties = || Json::from(json!({"probe": script}));
    let with_env =
        VmRequest { env: Json::from(json!({"bosh": {"tags": {"probe": script.to_string()}}})), ..request(json!({})) };
    let with_cid = VmRequest { disks: vec!["disk-1".into(), cid(script.clone())], ..request(json!({})) };
    for answered in [
        Probe.create_stemcell(properties(), vec![]).unwrap(),
        Probe.create_stemcell(Json::raw("null"), tags.clone()).unwrap(),
        Probe.create_vm(request(json!({"probe": script}))).unwrap().vm,
        Probe.create_vm(with_env).unwrap().vm,
        Probe.create_vm(with_cid).unwrap().vm,
        Probe.create_disk(1, properties(), None).unwrap(),
        Probe.create_disk(1, Json::raw("{}"), Some(cid(script.clone()))).unwrap(),
        Probe.snapshot_disk("disk-1".into(), tags.clone()).unwrap(),
        Probe.snapshot_disk(cid(script.clone()), vec![]).unwrap(),
    ] {
        assert_eq!(outcomes(&answered), seen);
        assert!(Probe.has_vm(answered.clone()).unwrap() && Probe.has_disk(answered.clone()).unwrap());
        Probe.delete_stemcell(answered).unwrap();
    }
}

#[test]
fn created_networks_and_calculated_properties_hold_the_outcomes() {
    let script = json!([{"op": "clock.ending"}]);
    let seen = json!([{"op": "clock.ending", "ok": null}]);
    let _host = Fake::new().properties(json!({"probe": script})).install();
    let created = Probe.create_vm(request(json!({"probe": script}))).unwrap();
    assert_eq!(created.networks[0].extra.value().unwrap(), json!({"nic_group": 1, "probe": seen}));
    assert_eq!(Probe.calculate_vm_cloud_properties(SIZE).unwrap().value().unwrap(), json!({"probe": seen}));
}

#[test]
fn all_other_methods_return_the_outcomes_as_a_cloud_error() {
    let _host = Fake::new().install();
    let script = || json!([{"op": "clock.ending"}]);
    let scripted = || cid(script());
    let metadata = || vec![("probe".to_owned(), script().to_string())];
    for error in [
        Probe.delete_stemcell(scripted()).unwrap_err(),
        Probe.delete_vm(scripted()).unwrap_err(),
        Probe.has_vm(scripted()).unwrap_err(),
        Probe.reboot_vm(scripted()).unwrap_err(),
        Probe.set_vm_metadata("vm-1".into(), metadata()).unwrap_err(),
        Probe.set_vm_metadata(scripted(), vec![]).unwrap_err(),
        Probe.delete_disk(scripted()).unwrap_err(),
        Probe.has_disk(scripted()).unwrap_err(),
        Probe.attach_disk("vm-1".into(), scripted()).unwrap_err(),
        Probe.detach_disk(scripted(), "disk-1".into()).unwrap_err(),
        Probe.set_disk_metadata("disk-1".into(), metadata()).unwrap_err(),
        Probe.get_disks(scripted()).unwrap_err(),
        Probe.resize_disk(scripted(), 1).unwrap_err(),
        Probe.update_disk("disk-1".into(), 1, Json::from(json!({"probe": script()}))).unwrap_err(),
        Probe.delete_snapshot(scripted()).unwrap_err(),
        Probe.create_network(spec(script())).unwrap_err(),
        Probe.delete_network(scripted()).unwrap_err(),
    ] {
        assert_eq!(error.kind, ErrorKind::Cloud);
        assert_eq!(error.message, r#"probe outcomes: [{"ok":null,"op":"clock.ending"}]"#);
    }
}

#[test]
fn arguments_can_be_used_in_scripts() {
    let host = Fake::new().install();
    let script = json!([{"op": "log", "message": "{{args.agent_id}} {{args.networks.0.name}}"}]);
    Probe.create_vm(request(json!({"probe": script}))).unwrap();
    assert_eq!(host.logs()[0].1, "agent-1 default");
}

#[test]
fn a_script_can_choose_the_error() {
    let _host = Fake::new().install();
    for (kind, expected) in [
        ("not-implemented", ErrorKind::NotImplemented),
        ("not-supported", ErrorKind::NotSupported),
        ("vm-not-found", ErrorKind::VmNotFound),
        ("vm-creation-failed", ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: true })),
        ("disk-not-found", ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: true })),
        ("disk-not-attached", ErrorKind::DiskNotAttached(RetryAdvice { ok_to_retry: true })),
        ("no-disk-space", ErrorKind::NoDiskSpace(RetryAdvice { ok_to_retry: true })),
        ("network-not-found", ErrorKind::NetworkNotFound),
        ("stemcell-not-found", ErrorKind::StemcellNotFound),
        ("cloud", ErrorKind::Cloud),
        ("cpi", ErrorKind::Cpi),
    ] {
        let script = json!([
            {"op": "error", "kind": kind, "message": "m", "ok_to_retry": true},
            {"op": "panic", "message": "never reached"},
        ]);
        assert_eq!(run(script).unwrap_err(), Error::new(expected, "m"));
    }
}

#[test]
fn a_script_can_choose_the_result() {
    let _host = Fake::new().properties(json!({"probe": [{"op": "result", "json": {"a": 1}}]})).install();
    let result = |json: Value| json!([{"op": "result", "json": json}]);
    let scripted = |json: Value| cid(result(json));
    assert_eq!(Probe.create_disk(1, Json::from(json!({"probe": result(json!("d"))})), None).unwrap(), "d");
    assert!(!Probe.has_vm(scripted(json!(false))).unwrap());
    assert_eq!(Probe.get_disks(scripted(json!(["a", "b"]))).unwrap(), ["a", "b"]);
    assert_eq!(Probe.attach_disk(scripted(json!("/dev/x")), "d".into()), Ok(DiskHint::Text("/dev/x".into())));
    let fields = DiskHint::Fields(vec![("path".into(), "/dev/x".into())]);
    assert_eq!(Probe.attach_disk(scripted(json!({"path": "/dev/x"})), "d".into()), Ok(fields));
    assert_eq!(Probe.update_disk(scripted(json!(null)), 1, Json::raw("{}")).unwrap(), None);
    assert_eq!(Probe.update_disk(scripted(json!("new")), 1, Json::raw("{}")).unwrap().as_deref(), Some("new"));
    assert_eq!(Probe.delete_vm(scripted(json!(null))), Ok(()));
    assert_eq!(Probe.calculate_vm_cloud_properties(SIZE).unwrap().value().unwrap(), json!({"a": 1}));
    let network = result(json!({"network": "n", "range": "r", "gateway": "g", "cloud_properties": {"b": 2}}));
    let created = Probe.create_network(spec(network)).unwrap();
    assert_eq!((created.network.as_str(), created.cloud_properties.text()), ("n", r#"{"b":2}"#));

    let plain = Probe.create_vm(request(json!({"probe": result(json!("vm-x"))}))).unwrap();
    assert_eq!((plain.vm.as_str(), plain.networks), ("vm-x", vec![network_as_given()]));
    let whole = json!({"vm": "vm-x", "networks": [{"name": "default", "ip": "10.0.0.9"}, {"name": "other"}]});
    let whole = Probe.create_vm(request(json!({"probe": result(whole)}))).unwrap();
    assert_eq!((whole.networks[0].ip.as_deref(), whole.networks[1].name.as_str()), (Some("10.0.0.9"), "other"));
    assert_eq!(whole.networks[0].extra, network_as_given().extra);

    let error = Probe.has_vm(scripted(json!("yes"))).unwrap_err();
    assert!(error.message.contains("the result does not fit this method"), "{error}");
}

fn network_as_given() -> Network {
    network("manual")
}

#[test]
fn garbage_fits_every_type_of_result() {
    let garbage = |kind: &str| json!([{"op": "garbage", "kind": kind, "mib": 1, "depth": 3}]);
    let vm = |kind: &str| Probe.create_vm(request(json!({"probe": garbage(kind)}))).unwrap();
    let _host = Fake::new().properties(json!({"probe": garbage("deep-json")})).install();
    assert_eq!(Probe.calculate_vm_cloud_properties(SIZE).unwrap().text(), r#"{"a":[[[]]]}"#);
    assert_eq!(vm("empty").vm, "");
    assert!(vm("nul").vm.contains('\0'));
    assert_eq!(vm("huge").vm.len(), 1024 * 1024);
    assert_eq!(vm("bad-json").networks[0].extra.text(), r#"{"a":"#);
    assert!(vm("no-networks").networks.is_empty());
    assert_eq!(vm("foreign-network").networks[0].name, "default-foreign");
    assert_eq!(vm("duplicate-network").networks.len(), 2);
    assert!(vm("shadowed-network").networks[0].extra.text().contains("192.0.2.66"));
    let hint = |kind: &str| Probe.attach_disk(cid(garbage(kind)), "disk-1".into()).unwrap();
    assert_eq!(hint("empty"), DiskHint::Text(String::new()));
    assert_eq!(hint("empty-fields"), DiskHint::Fields(vec![]));
    assert!(matches!(hint("duplicate-keys"), DiskHint::Fields(fields) if fields.len() == 2));
    assert_eq!(Probe.create_network(spec(garbage("not-an-object"))).unwrap().cloud_properties.text(), "[1]");
    assert_eq!(Probe.has_vm(cid(garbage("duplicate-keys"))).unwrap_err().message, r#"{"a":1,"a":2}"#);
    let in_error = json!([{"op": "garbage", "kind": "nul", "in_error": true}]);
    assert!(run(in_error).unwrap_err().message.contains('\u{1b}'));
}

#[test]
fn a_cancelled_operation_runs_its_cleanup_instead_of_the_rest() {
    let script = json!([
        {"op": "http", "url": "https://c/a"},
        {"op": "clock.sleep", "ms": 5000, "on_cancel": [
            {"op": "http", "method": "DELETE", "url": "https://c/{{0.ok.body.id}}"},
            {"op": "clock.sleep", "ms": 1},
        ]},
        {"op": "panic", "message": "never reached"},
    ]);
    let host = Fake::new()
        .on("GET", "https://c/a", Answer::json(200, json!({"id": "a7"})))
        .on("DELETE", "https://c/a7", Answer::text(204, ""))
        .end_after_ms(1000)
        .install();
    let error = run(script).unwrap_err();
    assert_eq!(host.requests()[1].url, "https://c/a7");
    assert_eq!(error.kind, ErrorKind::Cloud);
    let (head, tail) = error.message.split_once("; probe outcomes: ").unwrap();
    assert!(head.starts_with("probe cancelled: the call is ending"), "{head}");
    let seen: Value = serde_json::from_str(tail).unwrap();
    assert_eq!((seen.as_array().unwrap().len(), &seen[2]["ok"]["status"]), (4, &json!(204)));
}

#[test]
fn a_script_without_cleanup_continues_after_a_cancelled_operation() {
    let _host = Fake::new().end_after_ms(0).install();
    let seen = run(json!([{"op": "clock.sleep", "ms": 1}, {"op": "clock.ending"}])).unwrap();
    let text = "the call is ending: undo what is unfinished, and return";
    assert_eq!(seen[0]["error"], json!({"kind": "cancelled", "message": text}));
    assert_eq!(seen[1]["ok"], text);
}

#[test]
fn a_mistake_in_a_script_is_an_error_with_its_place() {
    let _host = Fake::new().install();
    for (operation, part) in [
        (json!({"op": "nope"}), "unknown variant `nope`"),
        (json!({"op": "clock.sleep"}), "missing field `ms`"),
        (json!({"op": "clock.sleep", "ms": 1, "x": 1}), "unknown field `x`"),
        (json!({"op": "clock.now", "x": 1}), "unknown field `x`"),
        (json!({"op": "http", "url": "u", "methd": "GET"}), "unknown field `methd`"),
        (json!({"op": "log", "message": "{{0.ok.x}}"}), "does not exist"),
        (json!({"op": "clock.now", "repeat": "x"}), "`repeat` must be a number"),
        (json!({"op": "clock.sleep", "ms": 1, "on_cancel": {}}), "`on_cancel` must be an array"),
        (json!({"op": "error", "kind": "odd"}), "the error kind `odd` does not exist"),
        (json!({"op": "garbage", "kind": "odd"}), "unknown variant `odd`"),
    ] {
        let error = run(json!([{"op": "clock.ending"}, operation])).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cpi, "{error}");
        assert!(error.message.starts_with("probe script: operation "), "{error}");
        assert!(error.message.contains(part), "{error}");
        assert!(error.message.contains(r#"probe outcomes: [{"ok":null,"op":"clock.ending"}"#), "{error}");
    }
}
