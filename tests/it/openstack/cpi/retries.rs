//! A call that follows one that did not complete: it cleans up what the first one left,
//! and the cloud is as it was before.

use super::{Cpi, small_vm};
use serde_json::{Value, json};
use tests::CLOUD_ERROR;
use tests::openstack::{Fault, Gateway, Rule, Service, Simulator, on_each_cloud};

const UNKNOWN: &str = "11111111-2222-4333-8444-666666666666";
const VM_NOT_FOUND: &str = "Bosh::Clouds::VMNotFound";

#[test]
fn a_second_delete_vm_deletes_the_port_that_the_first_one_could_not_delete() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let (vm, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.91"));
        let hits = gateway.inject(Rule::on(Service::Network, "DELETE", "/ports/*").times(1000), Fault::status(403));
        cpi.run("delete_vm", json!([vm])).fails(CLOUD_ERROR, &["deleting port", "403"]);
        gateway.clear_faults();
        assert!(hits.count() > 0, "{name}");
        let left = cpi.api.left_behind(&before);
        assert!(left.len() == 1 && left[0].starts_with("port "), "{name}: {left:?}");
        cpi.run("delete_vm", json!([vm])).fails(VM_NOT_FOUND, &[&vm]);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn delete_vm_deletes_a_leftover_boot_volume_but_never_a_disk() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let with_disk = cpi.api.contents();
        cpi.ok("set_disk_metadata", json!([disk, {"deleted-with": UNKNOWN}]));
        let volume = json!({"volume": {"size": 1, "name": "", "metadata": {"deleted-with": UNKNOWN, "more": "x"}}});
        let made = cpi.api.request(Service::Volume, "POST", "/volumes", Some(&volume)).value();
        let id = made["volume"]["id"].as_str().unwrap_or_else(|| panic!("{name}: {made}")).to_owned();
        let is = |status: &str| {
            cpi.api.volumes().iter().any(|volume| volume["id"] == json!(id) && volume["status"] == status)
        };
        for _ in 0..300 {
            if is("available") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let bootable = json!({"os-set_bootable": {"bootable": true}});
        cpi.api.request(Service::Volume, "POST", &format!("/volumes/{id}/action"), Some(&bootable));
        cpi.run("delete_vm", json!([UNKNOWN])).fails(VM_NOT_FOUND, &[UNKNOWN]);
        assert_eq!(cpi.api.left_behind(&with_disk), Vec::<String>::new(), "{name}");
        assert_eq!(cpi.ok("has_disk", json!([disk])), Value::Bool(true), "{name}");
        cpi.ok("delete_disk", json!([disk]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}

#[test]
fn a_server_that_nova_would_keep_after_its_deletion_is_deleted_permanently() {
    let simulator = Simulator::new();
    simulator.enable_soft_delete();
    let gateway = Gateway::start(simulator);
    let cpi = Cpi::new(&gateway);
    let before = cpi.api.contents();
    let stemcell = cpi.stemcell();
    let disk = cpi.cid("create_disk", json!([1024, {}, null]));
    let (vm, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.93"));
    cpi.ok("attach_disk", json!([vm, disk]));
    cpi.ok("delete_vm", json!([vm]));
    // The disk is not attached any more.
    cpi.ok("delete_disk", json!([disk]));
    cpi.ok("delete_stemcell", json!([stemcell]));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

/// The API ignores the value of `forceDelete`, but the grants allow only `now`.
#[test]
fn nova_accepts_the_force_delete_action_that_the_grants_allow() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let (vm, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.94"));
        let action = json!({"forceDelete": "now"});
        let answer = cpi.api.request(Service::Compute, "POST", &format!("/servers/{vm}/action"), Some(&action));
        assert_eq!(answer.status, 202, "{name}: {}", answer.value());
        let port = cpi.api.left_behind(&before);
        assert!(port.iter().all(|line| line.starts_with("port ")), "{name}: {port:?}");
        for line in port {
            let id = line.split(' ').nth(1).unwrap_or_default();
            cpi.api.request(Service::Network, "DELETE", &format!("/ports/{id}"), None);
        }
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn delete_network_succeeds_if_the_response_is_lost() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let spec = json!({"type": "manual", "range": "10.75.0.0/24", "cloud_properties": {}});
        let made = cpi.ok("create_network", json!([spec]));
        let hits = gateway.inject(Rule::on(Service::Network, "DELETE", "/networks/*"), Fault::ResetAfter);
        cpi.ok("delete_network", json!([made[0]]));
        assert_eq!(hits.count(), 1, "{name}");
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.run("delete_network", json!([made[0]])).fails("Bosh::Clouds::NetworkNotFound", &[]);
    });
}

#[test]
fn a_404_page_of_a_proxy_does_not_mean_that_a_resource_is_missing() {
    on_each_cloud(|_, gateway| {
        let cpi = Cpi::new(gateway);
        for (service, path, method, argument) in [
            (Service::Compute, "/servers/*", "has_vm", UNKNOWN),
            (Service::Compute, "/servers/*", "delete_vm", UNKNOWN),
            (Service::Volume, "/volumes/*", "has_disk", UNKNOWN),
            (Service::Volume, "/volumes/*", "delete_disk", UNKNOWN),
            (Service::Image, "/images/*", "delete_stemcell", UNKNOWN),
        ] {
            gateway.inject(Rule::on(service, "GET", path), Fault::status(404));
            cpi.run(method, json!([argument])).fails(CLOUD_ERROR, &["404", "the answer is not from the"]);
            gateway.clear_faults();
        }
    });
}
