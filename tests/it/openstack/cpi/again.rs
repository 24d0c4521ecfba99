//! A call after one that did not come to its end: what the first left, the
//! second deals with, and the cloud is as it was.

use super::{Cpi, small};
use serde_json::{Value, json};
use tests::CLOUD_ERROR;
use tests::openstack::{Fault, Gateway, Rule, Service, Simulator, on_each_cloud};

const GONE: &str = "11111111-2222-4333-8444-666666666666";
const VM: &str = "Bosh::Clouds::VMNotFound";

#[test]
fn a_second_delete_of_a_vm_finds_the_port_that_the_first_could_not_delete() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let (vm, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.91"));
        let hits = gateway.inject(Rule::on(Service::Network, "DELETE", "/ports/*").times(1000), Fault::status(403));
        cpi.ask("delete_vm", json!([vm])).fails(CLOUD_ERROR, &["deleting port", "403"]);
        gateway.clear_faults();
        assert!(hits.count() > 0, "{name}");
        let left = cpi.api.left_behind(&before);
        assert!(left.len() == 1 && left[0].starts_with("port "), "{name}: {left:?}");
        cpi.ask("delete_vm", json!([vm])).fails(VM, &[&vm]);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}

#[test]
fn a_boot_volume_that_was_left_is_found_by_its_mark_and_a_disk_never_is() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let with_disk = cpi.api.contents();
        cpi.ok("set_disk_metadata", json!([disk, {"deleted-with": GONE}]));
        let volume = json!({"volume": {"size": 1, "name": "", "metadata": {"deleted-with": GONE, "more": "x"}}});
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
        cpi.ask("delete_vm", json!([GONE])).fails(VM, &[GONE]);
        assert_eq!(cpi.api.left_behind(&with_disk), Vec::<String>::new(), "{name}");
        assert_eq!(cpi.ok("has_disk", json!([disk])), Value::Bool(true), "{name}");
        cpi.ok("delete_disk", json!([disk]));
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}

#[test]
fn a_server_that_nova_keeps_is_deleted_for_good() {
    let simulator = Simulator::new();
    simulator.keep_deleted_servers();
    let gateway = Gateway::start(simulator);
    let cpi = Cpi::new(&gateway);
    let before = cpi.api.contents();
    let stemcell = cpi.stemcell();
    let disk = cpi.cid("create_disk", json!([1024, {}, null]));
    let (vm, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.93"));
    cpi.ok("attach_disk", json!([vm, disk]));
    cpi.ok("delete_vm", json!([vm]));
    // Nobody holds the disk any more.
    cpi.ok("delete_disk", json!([disk]));
    cpi.ok("delete_stemcell", json!([stemcell]));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

/// The grants have room for a word of the API that takes any value.
#[test]
fn nova_takes_the_word_that_deletes_for_good() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        let (vm, _) = cpi.create_vm(small(&cpi, &stemcell, "10.0.0.94"));
        let word = json!({"forceDelete": "now"});
        let answer = cpi.api.request(Service::Compute, "POST", &format!("/servers/{vm}/action"), Some(&word));
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
fn a_lost_answer_to_deleting_a_network_is_no_error() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let before = cpi.api.contents();
        let spec = json!({"type": "manual", "range": "10.75.0.0/24", "cloud_properties": {}});
        let made = cpi.ok("create_network", json!([spec]));
        let hits = gateway.inject(Rule::on(Service::Network, "DELETE", "/networks/*"), Fault::ResetAfter);
        cpi.ok("delete_network", json!([made[0]]));
        assert_eq!(hits.count(), 1, "{name}");
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
        cpi.ask("delete_network", json!([made[0]])).fails("Bosh::Clouds::NetworkNotFound", &[]);
    });
}

#[test]
fn a_page_of_a_proxy_is_no_missing_thing() {
    on_each_cloud(|_, gateway| {
        let cpi = Cpi::new(gateway);
        for (service, path, method, argument) in [
            (Service::Compute, "/servers/*", "has_vm", GONE),
            (Service::Compute, "/servers/*", "delete_vm", GONE),
            (Service::Volume, "/volumes/*", "has_disk", GONE),
            (Service::Volume, "/volumes/*", "delete_disk", GONE),
            (Service::Image, "/images/*", "delete_stemcell", GONE),
        ] {
            gateway.inject(Rule::on(service, "GET", path), Fault::status(404));
            cpi.ask(method, json!([argument])).fails(CLOUD_ERROR, &["404", "that is no answer of the"]);
            gateway.clear_faults();
        }
    });
}
