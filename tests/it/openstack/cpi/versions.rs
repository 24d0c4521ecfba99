//! Microversions: the guest requests a newer one only where it needs it.

use super::{Cpi, DIRECTOR, small_vm};
use serde_json::json;
use tests::CLOUD_ERROR;
use tests::openstack::{Fault, Gateway, Response, Rule, Service, Simulator, on_each_cloud};

#[test]
fn a_server_group_is_created_with_a_microversion_that_the_cloud_supports() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway).set("enable_auto_anti_affinity", json!(true));
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        gateway.clear_records();
        let (vm, _) = cpi.create_vm(small_vm(&cpi, &stemcell, "10.0.0.92"));
        let records = gateway.records();
        let groups: Vec<_> = records.iter().filter(|record| record.path == "/os-server-groups").collect();
        let versions = groups.iter().map(|record| record.header("openstack-api-version"));
        // An empty list, the new group, and a list of two pages, of which the second is empty.
        assert_eq!(versions.collect::<Vec<_>>(), [Some("compute 2.64"); 4], "{name}");
        assert_eq!(records.iter().filter(|record| record.path == "/").count(), 1, "{name}");
        let made = cpi.api.server_groups();
        let group = made.iter().find(|group| group["name"] == json!(format!("{DIRECTOR}-a-group")));
        assert_eq!(group.map(|group| group["policies"].clone()), Some(json!(["soft-anti-affinity"])), "{name}");
        cpi.ok("delete_vm", json!([vm]));
        cpi.ok("delete_stemcell", json!([stemcell]));
        cpi.delete_new_server_groups(&before);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}

#[test]
fn the_error_for_a_cloud_that_is_too_old_shows_its_newest_microversion() {
    let gateway = Gateway::start(Simulator::new());
    let cpi = Cpi::new(&gateway).set("enable_auto_anti_affinity", json!(true));
    let stemcell = cpi.stemcell();
    let old = json!({"version": {"id": "v2.1", "version": "2.12", "min_version": "2.1"}});
    gateway.inject(Rule::on(Service::Compute, "GET", "/"), Fault::Answer(Response::json(200, &old)));
    let response = cpi.run("create_vm", small_vm(&cpi, &stemcell, "10.0.0.92"));
    response.fails(
        CLOUD_ERROR,
        &["the newest version of the service is 2.12, but 2.15 is needed", "enable_auto_anti_affinity: false"],
    );
    assert_eq!(cpi.api.servers().len(), 0);
}
