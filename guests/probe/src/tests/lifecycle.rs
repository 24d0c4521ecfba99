use wasm_cpi_sdk::fake::{AgentEvent, Fake};
use wasm_cpi_sdk::{DiskHint, ErrorKind, METHODS, NetworkSpec, RetryAdvice, VmSize};

use super::*;

#[test]
fn every_created_object_exists() {
    let host = Fake::new().image("image").install();
    let stemcell = Probe.create_stemcell(Json::raw("null"), vec![]).unwrap();
    let vm = Probe.create_vm(VmRequest { stemcell: stemcell.clone(), ..request(json!({})) }).unwrap().vm;
    assert!(Probe.has_vm(vm.clone()).unwrap());
    Probe.set_vm_metadata(vm.clone(), vec![("a".into(), "b".into())]).unwrap();
    Probe.reboot_vm(vm.clone()).unwrap();
    let disk = Probe.create_disk(1024, Json::raw("{}"), Some(vm.clone())).unwrap();
    assert!(Probe.has_disk(disk.clone()).unwrap());
    let hint = Probe.attach_disk(vm.clone(), disk.clone()).unwrap();
    assert!(matches!(&hint, DiskHint::Text(path) if path.starts_with("/dev/disk/by-id/")));
    assert_eq!(Probe.get_disks(vm.clone()).unwrap(), Vec::<String>::new());
    Probe.set_disk_metadata(disk.clone(), vec![]).unwrap();
    Probe.resize_disk(disk.clone(), 2048).unwrap();
    assert_eq!(Probe.update_disk(disk.clone(), 2048, Json::raw("{}")).unwrap(), None);
    let snapshot = Probe.snapshot_disk(disk.clone(), vec![]).unwrap();
    Probe.delete_snapshot(snapshot).unwrap();
    Probe.detach_disk(vm.clone(), disk.clone()).unwrap();
    Probe.delete_disk(disk.clone()).unwrap();
    Probe.delete_vm(vm.clone()).unwrap();
    Probe.delete_stemcell(stemcell).unwrap();

    let events = host.agent_events();
    assert!(matches!(&events[0], AgentEvent::Bootstrap(settings) if settings.vm_name == vm));
    assert_eq!(
        events[1..],
        [
            AgentEvent::Created { vm: vm.clone(), registry_key: vm.clone() },
            AgentEvent::Attached { registry_key: vm.clone(), disk: disk.clone(), hint },
            AgentEvent::Detached { registry_key: vm.clone(), disk },
            AgentEvent::Deleted { registry_key: vm },
        ]
    );
}

#[test]
fn networks_can_be_created_and_deleted() {
    let _host = Fake::new().install();
    let spec = |range: Option<&str>| NetworkSpec {
        kind: "manual".into(),
        cloud_properties: Json::raw(r#"{"a":1}"#),
        range: range.map(str::to_owned),
        gateway: None,
        netmask_bits: Some(20),
    };
    let created = Probe.create_network(spec(None)).unwrap();
    assert_eq!((created.range.as_str(), created.gateway.as_str()), ("10.0.0.0/20", "10.0.0.1"));
    assert_eq!(created.cloud_properties, Json::raw(r#"{"a":1}"#));
    assert_eq!(Probe.create_network(spec(Some("10.9.0.0/24"))).unwrap().range, "10.9.0.0/24");
    Probe.delete_network(created.network).unwrap();
}

#[test]
fn objects_with_foreign_ids_do_not_exist() {
    let _host = Fake::new().install();
    let foreign = || "i-0123".to_owned();
    let vm = || "vm-1".to_owned();
    assert!(!Probe.has_vm(foreign()).unwrap());
    assert!(!Probe.has_disk(foreign()).unwrap());
    for (error, kind) in [
        (Probe.delete_vm(foreign()).unwrap_err(), ErrorKind::VmNotFound),
        (Probe.reboot_vm(foreign()).unwrap_err(), ErrorKind::VmNotFound),
        (Probe.set_vm_metadata(foreign(), vec![]).unwrap_err(), ErrorKind::VmNotFound),
        (Probe.get_disks(foreign()).unwrap_err(), ErrorKind::VmNotFound),
        (Probe.attach_disk(foreign(), "disk-1".into()).unwrap_err(), ErrorKind::VmNotFound),
        (Probe.attach_disk(vm(), foreign()).unwrap_err(), ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: false })),
        (Probe.detach_disk(vm(), foreign()).unwrap_err(), ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: false })),
        (Probe.delete_disk(foreign()).unwrap_err(), ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: false })),
        (
            Probe.set_disk_metadata(foreign(), vec![]).unwrap_err(),
            ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: false }),
        ),
        (Probe.resize_disk(foreign(), 1).unwrap_err(), ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: false })),
        (Probe.resize_disk("disk-10-a".into(), 9).unwrap_err(), ErrorKind::NotSupported),
        (Probe.update_disk("disk-10-a".into(), 9, Json::raw("{}")).unwrap_err(), ErrorKind::NotSupported),
        (
            Probe.snapshot_disk(foreign(), vec![]).unwrap_err(),
            ErrorKind::DiskNotFound(RetryAdvice { ok_to_retry: false }),
        ),
        (Probe.delete_snapshot(foreign()).unwrap_err(), ErrorKind::Cloud),
        (Probe.delete_network(foreign()).unwrap_err(), ErrorKind::NetworkNotFound),
        (Probe.delete_stemcell(foreign()).unwrap_err(), ErrorKind::StemcellNotFound),
        (Probe.create_disk(0, Json::raw("{}"), None).unwrap_err(), ErrorKind::Cpi),
        (
            Probe.create_vm(VmRequest { stemcell: foreign(), ..request(json!({})) }).unwrap_err(),
            ErrorKind::VmCreationFailed(RetryAdvice { ok_to_retry: false }),
        ),
    ] {
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[test]
fn the_id_of_a_vm_depends_on_its_agent_and_its_networks_are_returned() {
    let _host = Fake::new().install();
    let first = Probe.create_vm(request(json!({}))).unwrap();
    assert_eq!(first, Probe.create_vm(request(json!({}))).unwrap());
    assert_eq!(first.networks, [network("manual")]);
    let other = Probe.create_vm(VmRequest { agent_id: "agent-2".into(), ..request(json!({})) }).unwrap();
    assert_ne!(first.vm, other.vm);
}

#[test]
fn a_dynamic_network_gets_an_address_that_the_agent_settings_have() {
    let host = Fake::new().install();
    let created = Probe.create_vm(VmRequest { networks: vec![network("dynamic")], ..request(json!({})) }).unwrap();
    let ip = created.networks[0].ip.clone();
    assert!(ip.as_deref().is_some_and(|ip| ip.starts_with("10.")));
    match &host.agent_events()[0] {
        AgentEvent::Bootstrap(settings) => assert_eq!(settings.networks[0].ip, ip),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cloud_properties_depend_on_the_size() {
    let _host = Fake::new().install();
    let size = VmSize { ram_mib: 1500, cpu: 2, ephemeral_disk_mb: 10_000 };
    assert_eq!(
        Probe.calculate_vm_cloud_properties(size).unwrap().value().unwrap(),
        json!({"instance_type": "probe.c2.m1536", "ephemeral_disk": {"size": 10_000}})
    );
}

#[test]
fn it_describes_itself_and_declares_its_needs() {
    let description = Probe::describe();
    assert_eq!((description.name.as_str(), description.methods.len()), ("probe", METHODS.len()));
    let needs: Value = serde_json::from_str(crate::NEEDS).unwrap();
    assert_eq!(
        needs,
        json!({
            "version": 1,
            "http": [{"id": "any", "to": "*", "methods": ["*"], "paths": ["/**"], "operations": "*", "slots": "*",
                      "why": "runs scripted requests in tests"}],
            "logins": "*", "registry": true, "image": true, "expose": []
        })
    );
}
