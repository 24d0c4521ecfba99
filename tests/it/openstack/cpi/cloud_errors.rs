//! Requests that the cloud refuses: the error has the message of the cloud, tells the
//! Director whether to try again, and nothing is left behind.

use super::{Cpi, small_vm};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tests::openstack::{Api, Service, on_each_cloud};

const VM_CREATION_FAILED: &str = "Bosh::Clouds::VMCreationFailed";

/// Runs a function when it is dropped, so that a failed test also restores the cloud.
struct Undo<F: FnMut()>(F);

impl<F: FnMut()> Drop for Undo<F> {
    fn drop(&mut self) {
        // A second panic while the test panics would abort all tests.
        let undone = catch_unwind(AssertUnwindSafe(&mut self.0));
        if let (Err(panic), false) = (undone, std::thread::panicking()) {
            resume_unwind(panic);
        }
    }
}

/// Sets a quota of a project until the returned guard is dropped.
#[track_caller]
fn set_quota<'a>(admin: &'a Api, service: Service, project: &'a str, name: &'a str, limit: i64) -> Undo<impl FnMut()> {
    let (path, key) = if service == Service::Network { ("quotas", "quota") } else { ("os-quota-sets", "quota_set") };
    let answer = admin.request(service, "GET", &format!("/{path}/{project}"), None).value();
    let before = answer[key][name].as_i64().unwrap_or_else(|| panic!("no {name} in {answer}"));
    admin.set_quota(service, project, name, limit);
    Undo(move || admin.set_quota(service, project, name, before))
}

#[test]
fn create_vm_returns_the_message_of_nova_if_no_host_fits() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let admin = Api::admin(&cpi.cloud);
        let flavor = json!({"flavor": {
            "name": "m1.huge", "ram": 40_000, "vcpus": 4000, "disk": 100, "OS-FLV-EXT-DATA:ephemeral": 100,
        }});
        let made = admin.request(Service::Compute, "POST", "/flavors", Some(&flavor)).value();
        let made = format!("/flavors/{}", made["flavor"]["id"].as_str().unwrap_or_default());
        let _flavor = Undo(|| drop(admin.request(Service::Compute, "DELETE", &made, None)));
        let project = cpi.api.project();
        let _limits = ["cores", "ram"].map(|name| set_quota(&admin, Service::Compute, &project, name, -1));
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let mut arguments = small_vm(&cpi, &stemcell, "10.0.0.81");
        arguments[2]["instance_type"] = json!("m1.huge");
        let response = cpi.run("create_vm", arguments);
        response.fails(VM_CREATION_FAILED, &["No valid host was found"]);
        assert_eq!(response.error()["ok_to_retry"], true, "{name}");
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn an_exceeded_quota_is_reported_with_the_message_of_the_service() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let admin = Api::admin(&cpi.cloud);
        let project = cpi.api.project();
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        for (service, limit, method, kind, expected) in [
            (Service::Compute, "instances", "create_vm", VM_CREATION_FAILED, "Quota exceeded for instances"),
            (Service::Network, "port", "create_vm", VM_CREATION_FAILED, "Quota exceeded for resources"),
            (Service::Volume, "volumes", "create_disk", "Bosh::Clouds::NoDiskSpace", "VolumeLimitExceeded"),
        ] {
            let arguments = match method {
                "create_vm" => small_vm(&cpi, &stemcell, "10.0.0.82"),
                _ => json!([1024, {}, null]),
            };
            // No service accepts a quota below the current use.
            let used = match limit {
                "instances" => cpi.api.servers().len(),
                "port" => cpi.api.ports().len(),
                _ => cpi.api.volumes().len(),
            };
            let _limit = set_quota(&admin, service, &project, limit, i64::try_from(used).unwrap_or(0));
            let response = cpi.run(method, arguments);
            assert_eq!(response.error_type(), kind, "{name}: {limit}: {}", response.json);
            assert!(response.message().contains(expected), "{name}: {limit}: {}", response.message());
            assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}: {limit}");
        }
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn create_vm_deletes_the_port_of_a_taken_address_only_if_the_port_is_unused() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let stemcell = cpi.stemcell();
        let first = cpi.api.contents();
        let port = |device: &str| {
            json!({"port": {
                "network_id": cpi.cloud["network"], "fixed_ips": [{"ip_address": "10.0.0.83"}], "device_id": device,
                "device_owner": if device.is_empty() { "" } else { "lab:other" },
            }})
        };
        // The port of another device is kept, and so is its address.
        let made = cpi.api.request(Service::Network, "POST", "/ports", Some(&port("another-device"))).value();
        let before = cpi.api.contents();
        let response = cpi.run("create_vm", small_vm(&cpi, &stemcell, "10.0.0.83"));
        let id = made["port"]["id"].as_str().unwrap_or_default();
        let holder = format!("port `{id}` of device `another-device` (lab:other) has it");
        response.fails(VM_CREATION_FAILED, &["10.0.0.83", &holder]);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.api.request(Service::Network, "DELETE", &format!("/ports/{id}"), None);
        // The unused port of a VM that was never completed is deleted.
        cpi.api.request(Service::Network, "POST", "/ports", Some(&port("")));
        let (vm, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.83"));
        // The error for the address of a VM names the VM.
        let response = cpi.run("create_vm", small_vm(&cpi, &stemcell, "10.0.0.83"));
        response.fails(VM_CREATION_FAILED, &[&format!("address 10.0.0.83: VM `{vm}` has it")]);
        cpi.ok("delete_vm", json!([vm]));
        assert_eq!(cpi.api.left_behind(&first), Vec::<String>::new(), "{name}");
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn an_attached_disk_cannot_be_attached_to_another_vm() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let (one, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.84"));
        let (two, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.85"));
        cpi.ok("attach_disk", json!([one, disk]));
        let response = cpi.run("attach_disk", json!([two, disk]));
        response.fails(tests::CLOUD_ERROR, &["in-use", &one]);
        // When the VM is deleted, its disk can be attached to another one.
        cpi.ok("delete_vm", json!([one]));
        assert_eq!(cpi.ok("attach_disk", json!([two, disk])), "/dev/sdc", "{name}");
        cpi.ok("delete_vm", json!([two]));
        cpi.ok("delete_disk", json!([disk]));
        cpi.ok("delete_stemcell", json!([stemcell]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}
