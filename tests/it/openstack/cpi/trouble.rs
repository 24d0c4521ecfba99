//! A cloud that says no for reasons of its own: it is told in its own words, the
//! Director learns whether to try again, and nothing is left behind.

use super::{Cpi, small};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tests::openstack::{Api, Service, on_each_cloud};

const FAILED: &str = "Bosh::Clouds::VMCreationFailed";

/// Puts something back when it is dropped: a test that fails leaves the cloud as
/// it was, too.
struct Undo<F: FnMut()>(F);

impl<F: FnMut()> Drop for Undo<F> {
    fn drop(&mut self) {
        // A second panic on top of the test's own would end all tests.
        let undone = catch_unwind(AssertUnwindSafe(&mut self.0));
        if let (Err(panic), false) = (undone, std::thread::panicking()) {
            resume_unwind(panic);
        }
    }
}

/// Sets a limit of a project, until the guard is dropped.
#[track_caller]
fn limited<'a>(admin: &'a Api, service: Service, project: &'a str, name: &'a str, limit: i64) -> Undo<impl FnMut()> {
    let (path, key) = if service == Service::Network { ("quotas", "quota") } else { ("os-quota-sets", "quota_set") };
    let answer = admin.request(service, "GET", &format!("/{path}/{project}"), None).value();
    let before = answer[key][name].as_i64().unwrap_or_else(|| panic!("no {name} in {answer}"));
    admin.set_quota(service, project, name, limit);
    Undo(move || admin.set_quota(service, project, name, before))
}

#[test]
fn a_server_that_fits_nowhere_is_told_in_novas_words() {
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
        let _limits = ["cores", "ram"].map(|name| limited(&admin, Service::Compute, &project, name, -1));
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let mut arguments = small(&cpi, &stemcell, "10.0.0.81");
        arguments[2]["instance_type"] = json!("m1.huge");
        let response = cpi.ask("create_vm", arguments);
        response.fails(FAILED, &["No valid host was found"]);
        assert_eq!(response.error()["ok_to_retry"], true, "{name}");
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn a_quota_that_is_used_up_is_told_as_the_service_tells_it() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let admin = Api::admin(&cpi.cloud);
        let project = cpi.api.project();
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        for (service, limit, method, kind, said) in [
            (Service::Compute, "instances", "create_vm", FAILED, "Quota exceeded for instances"),
            (Service::Network, "port", "create_vm", FAILED, "Quota exceeded for resources"),
            (Service::Volume, "volumes", "create_disk", "Bosh::Clouds::NoDiskSpace", "VolumeLimitExceeded"),
        ] {
            let arguments = match method {
                "create_vm" => small(&cpi, &stemcell, "10.0.0.82"),
                _ => json!([1024, {}, null]),
            };
            // No service takes a limit below what is there already.
            let used = match limit {
                "instances" => cpi.api.servers().len(),
                "port" => cpi.api.ports().len(),
                _ => cpi.api.volumes().len(),
            };
            let _limit = limited(&admin, service, &project, limit, i64::try_from(used).unwrap_or(0));
            let response = cpi.ask(method, arguments);
            assert_eq!(response.error_type(), kind, "{name}: {limit}: {}", response.json);
            assert!(response.message().contains(said), "{name}: {limit}: {}", response.message());
            assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}: {limit}");
        }
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn an_address_that_is_taken_is_taken_back_only_from_nobody() {
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
        // Of somebody: it stays, and so does the address.
        let made = cpi.api.request(Service::Network, "POST", "/ports", Some(&port("somebody"))).value();
        let before = cpi.api.contents();
        let response = cpi.ask("create_vm", small(&cpi, &stemcell, "10.0.0.83"));
        response.fails(FAILED, &["10.0.0.83"]);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        let id = made["port"]["id"].as_str().unwrap_or_default();
        cpi.api.request(Service::Network, "DELETE", &format!("/ports/{id}"), None);
        // Of a VM that was never finished: it goes.
        cpi.api.request(Service::Network, "POST", "/ports", Some(&port("")));
        let (vm, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.83"));
        cpi.ok("delete_vm", json!([vm]));
        assert_eq!(cpi.api.left_behind(&first), Vec::<String>::new(), "{name}");
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn a_disk_is_where_it_is_and_goes_nowhere_else() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let (one, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.84"));
        let (two, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.85"));
        cpi.ok("attach_disk", json!([one, disk]));
        let response = cpi.ask("attach_disk", json!([two, disk]));
        response.fails(tests::CLOUD_ERROR, &["in-use", &one]);
        // A VM that goes leaves its disk to the next.
        cpi.ok("delete_vm", json!([one]));
        assert_eq!(cpi.ok("attach_disk", json!([two, disk])), "/dev/sdc", "{name}");
        cpi.ok("delete_vm", json!([two]));
        cpi.ok("delete_disk", json!([disk]));
        cpi.ok("delete_stemcell", json!([stemcell]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}
