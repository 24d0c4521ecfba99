//! Anti-affinity: all VMs of an instance group are in one server group, although a Director
//! creates them in parallel and Nova accepts several groups with one name.

use super::{Cpi, DIRECTOR};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tests::openstack::{Fault, Rule, Service, on_each_cloud};

/// The number of VMs that are created in parallel.
const PARALLEL: u8 = 8;

#[test]
fn vms_that_are_created_in_parallel_share_one_server_group() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway).set("enable_auto_anti_affinity", json!(true));
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        // In the first round, groups are created late, after most calls have seen that there is none.
        let delayed = Rule::on(Service::Compute, "POST", "/os-server-groups").times(PARALLEL.into());
        let hits = gateway.inject(delayed, Fault::Delay(Duration::from_secs(3)));
        for (round, group) in ["delayed", "undelayed"].into_iter().enumerate() {
            let address = |vm: u8| format!("10.0.0.{}", 60 + 10 * round + usize::from(vm));
            let addresses: Vec<String> = (0..PARALLEL).map(address).collect();
            let vms: BTreeSet<String> = cpi.create_vms_in_parallel(&stemcell, group, &addresses).into_iter().collect();
            let full_name = format!("{DIRECTOR}-{group}");
            let groups: Vec<Value> =
                cpi.api.server_groups().into_iter().filter(|found| found["name"] == json!(full_name)).collect();
            assert_eq!(groups.len(), 1, "{name}, {group}: {groups:?}");
            let members = groups[0]["members"].as_array().into_iter().flatten().filter_map(Value::as_str);
            assert_eq!(members.map(str::to_owned).collect::<BTreeSet<_>>(), vms, "{name}, {group}");
            for vm in vms {
                cpi.ok("delete_vm", json!([vm]));
            }
        }
        assert!(hits.count() >= 2, "{name}: only {} calls created a group in the first round", hits.count());
        gateway.clear_faults();
        cpi.ok("delete_stemcell", json!([stemcell]));
        cpi.delete_new_server_groups(&before);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}
