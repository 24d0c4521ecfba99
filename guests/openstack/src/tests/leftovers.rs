//! An interrupted `delete_vm`, and the next one.

use serde_json::json;
use wasm_cpi_sdk::fake::{AgentEvent, Answer};
use wasm_cpi_sdk::{Cpi, ErrorKind};

use super::cloud::{Fault, Shared};
use super::{cpi, manual, properties, request, small, start, vip};

/// Refuses a request more often than any call retries it.
fn refuse(cloud: &Shared, method: &str, path: &str, status: u16) {
    for _ in 0..50 {
        cloud.borrow_mut().fault(method, path, 0, Fault::Before(Answer::text(status, "not now")));
    }
}

#[test]
fn a_second_delete_finds_the_port_that_the_first_one_left() {
    let (host, cloud) = start(properties());
    let vm = cpi().create_vm(request(small(), vec![manual(), vip()])).unwrap().vm;
    refuse(&cloud, "DELETE", "ports/*", 500);
    let error = cpi().delete_vm(vm.clone()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cloud);
    assert!(error.message.contains("deleting port"), "{error}");
    assert_eq!((cloud.borrow().all("servers").len(), cloud.borrow().all("ports").len()), (0, 1));
    // The server does not exist any more, and its settings are deleted.
    assert!(matches!(host.agent_events().last(), Some(AgentEvent::Deleted { .. })));
    cloud.borrow_mut().clear_faults();
    assert_eq!(cpi().delete_vm(vm).unwrap_err().kind, ErrorKind::VmNotFound);
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn a_second_delete_finds_the_boot_volume_that_the_first_one_left() {
    let (_host, cloud) = start(properties());
    let boot = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
    let vm = cpi().create_vm(request(boot, vec![manual()])).unwrap().vm;
    cloud.borrow_mut().keeps_boot_volumes = true;
    refuse(&cloud, "DELETE", "volumes/*", 500);
    let error = cpi().delete_vm(vm.clone()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cloud, "{error}");
    assert_eq!((cloud.borrow().all("ports").len(), cloud.borrow().all("volumes").len()), (0, 1));
    cloud.borrow_mut().clear_faults();
    assert_eq!(cpi().delete_vm(vm).unwrap_err().kind, ErrorKind::VmNotFound);
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn a_second_delete_of_a_server_that_is_being_deleted_finds_its_port() {
    let (_host, cloud) = start(properties());
    let server = json!({"name": "vm-x", "status": "ACTIVE", "image": {"id": "i"}, "OS-EXT-STS:task_state": "deleting"});
    cloud.borrow_mut().put("servers", "s", server);
    cloud.borrow_mut().put("ports", "p", json!({"device_id": "", "tags": ["deleted-with-s"]}));
    cpi().delete_vm("s".into()).unwrap();
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn ports_and_volumes_of_another_server_stay() {
    let (_host, cloud) = start(properties());
    let volume = |server: &str, name: &str| {
        json!({"status": "available", "name": name, "bootable": "true", "metadata": {"deleted-with": "s"},
            "attachments": [{"server_id": server}]})
    };
    for (id, thing) in [("taken", volume("t", "")), ("disk", volume("s", "volume-d")), ("free", volume("s", ""))] {
        cloud.borrow_mut().put("volumes", id, thing);
    }
    cloud.borrow_mut().put("ports", "taken", json!({"device_id": "t", "tags": ["deleted-with-s"]}));
    assert_eq!(cpi().delete_vm("s".into()).unwrap_err().kind, ErrorKind::VmNotFound);
    let volumes: Vec<_> = cloud.borrow().all("volumes").iter().map(|volume| volume["id"].clone()).collect();
    assert_eq!(volumes, ["disk", "taken"]);
    assert_eq!(cloud.borrow().only("ports")["id"], "taken");
}

#[test]
fn delete_vm_succeeds_if_the_cloud_does_not_support_port_tags() {
    for status in [403, 404] {
        let (_host, cloud) = start(properties());
        let vm = cpi().create_vm(request(small(), vec![manual()])).unwrap().vm;
        refuse(&cloud, "PUT", "ports/*/tags/*", status);
        cpi().delete_vm(vm).unwrap();
        assert_eq!(cloud.borrow().left(), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_deleted_if_marking_fails() {
    let (_host, cloud) = start(properties());
    let vm = cpi().create_vm(request(small(), vec![manual()])).unwrap().vm;
    refuse(&cloud, "PUT", "ports/*/tags/*", 503);
    assert_eq!(cpi().delete_vm(vm.clone()).unwrap_err().kind, ErrorKind::Cloud);
    assert_eq!((cloud.borrow().all("servers").len(), cloud.borrow().all("ports").len()), (1, 1));
    cloud.borrow_mut().clear_faults();
    cpi().delete_vm(vm).unwrap();
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn the_log_names_pool_members_of_the_old_cpi() {
    let (host, cloud) = start(properties());
    let metadata = json!({"lbaas_pool_1": "pool-1/member-1", "lbaas_pool_2": "odd", "job": "web"});
    let server = json!({"name": "vm-x", "status": "ACTIVE", "metadata": metadata, "image": {"id": "i"}});
    cloud.borrow_mut().put("servers", "s", server);
    cpi().delete_vm("s".into()).unwrap();
    let said = format!("{:?}", host.logs());
    for part in [
        "stays member member-1 of load balancer pool pool-1",
        "expected <pool>/<member> in metadata lbaas_pool_2, found `odd`",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
