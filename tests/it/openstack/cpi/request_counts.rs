//! The requests of each method: none is sent twice without need, and their numbers are those of
//! the table in `guests/openstack/README.md`, which `UPDATE_EXPECT=1` rewrites.

mod trace;

use super::{Cpi, manual_network};
use crate::request_counts::{Row, check_table, row, run_rows};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tests::openstack::{Gateway, Simulator, Tenant};
use trace::{Exchange, Recorder};

/// The requests of bosh-openstack-cpi in Go, as they were counted for the comparison: with its login, and with two
/// reads of every change.
const GO_CPI: [(&str, usize); 9] = [
    ("create_vm", 14),
    ("attach_disk", 10),
    ("delete_vm", 10),
    ("detach_disk", 7),
    ("create_disk", 7),
    ("snapshot_disk", 5),
    ("reboot_vm", 5),
    ("set_vm_metadata", 5),
    ("has_vm", 2),
];

/// The life of a VM with a disk: every method in its usual case. The table has these calls.
fn usual_calls(cpi: &Cpi<'_>) -> Vec<Row> {
    let vm = json!([
        "agent-1", "$stemcell", {"instance_type": "m1.small"}, manual_network(&cpi.cloud, "10.0.0.61"), [], tests::cloud::env()
    ]);
    let network = json!([{"type": "manual", "range": "10.74.0.0/24", "cloud_properties": {}}]);
    vec![
        row("create_stemcell", json!([cpi.image(), {"name": "little", "version": "1", "disk_format": "raw"}]))
            .returns("$stemcell"),
        row("calculate_vm_cloud_properties", json!([{"ram": 600, "cpu": 1, "ephemeral_disk_size": 5000}])),
        row("create_network", network).returns("$network"),
        row("create_vm", vm).returns("$vm"),
        row("has_vm", json!(["$vm"])),
        row("set_vm_metadata", json!(["$vm", {"deployment": "d", "job": "web", "index": "0", "name": "web/0"}])),
        row("create_disk", json!([1024, {}, "$vm"])).returns("$disk"),
        row("has_disk", json!(["$disk"])),
        row("set_disk_metadata", json!(["$disk", {"deployment": "d"}])),
        row("attach_disk", json!(["$vm", "$disk"])),
        row("get_disks", json!(["$vm"])),
        row("snapshot_disk", json!(["$disk", {"deployment": "d", "job": "web", "index": "0"}])).returns("$snapshot"),
        row("reboot_vm", json!(["$vm"])),
        row("detach_disk", json!(["$vm", "$disk"])),
        row("delete_snapshot", json!(["$snapshot"])),
        row("resize_disk", json!(["$disk", 2048])),
        row("update_disk", json!(["$disk", 3072, {"type": cpi.cloud["volume_type"]}])),
        row("delete_disk", json!(["$disk"])),
        row("delete_vm", json!(["$vm"])),
        row("delete_network", json!(["$network"])),
        row("delete_stemcell", json!(["$stemcell"])),
    ]
}

/// Calls in other situations, in which nothing may be asked twice either.
fn other_calls(cpi: &Cpi<'_>) -> Vec<Row> {
    const UNKNOWN: &str = "11111111-2222-4333-8444-777777777777";
    let mut networks = manual_network(&cpi.cloud, "10.0.0.62");
    networks["public"] = json!({"type": "vip", "ip": cpi.cloud["floating_ip"], "cloud_properties": {}});
    networks["net"]["cloud_properties"]["vrrp_port_check"] = json!(false);
    let grouped = |properties: Value, networks: &Value| json!(["agent-1", "$stemcell", properties, networks, ["$disk"], {"bosh": {"group": "a-group"}}]);
    let first = json!({"instance_type": "m1.tiny", "allowed_address_pairs": "10.0.0.99", "security_groups": ["bosh"]});
    let dynamic = json!({"net": {"type": "dynamic", "cloud_properties": {"net_id": cpi.cloud["network"]}}});
    let second = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
    vec![
        row("create_stemcell", json!([cpi.image(), {"name": "little", "disk_format": "raw"}])).returns("$stemcell"),
        row("create_stemcell", json!([cpi.image(), {"image_id": "$stemcell"}])),
        row("create_disk", json!([1024, {}, null])).returns("$disk"),
        row("create_vm", grouped(first, &networks)).returns("$vm"),
        row("create_vm", grouped(second, &dynamic)).returns("$second"),
        row("set_vm_metadata", json!(["$vm", {"name": "web/0"}])),
        row("set_vm_metadata", json!(["$vm", {}])),
        row("attach_disk", json!(["$second", "$disk"])),
        row("attach_disk", json!(["$second", "$disk"])),
        row("attach_disk", json!(["$vm", "$disk"])).fails("CloudError"),
        row("get_disks", json!(["$second"])),
        row("delete_disk", json!(["$disk"])).fails("CloudError"),
        row("detach_disk", json!(["$second", "$disk"])),
        row("detach_disk", json!(["$second", "$disk"])),
        row("detach_disk", json!(["$second", UNKNOWN])),
        row("resize_disk", json!(["$disk", 1024])),
        row("delete_vm", json!(["$second"])),
        row("delete_vm", json!(["$vm"])),
        row("delete_vm", json!(["$vm"])).fails("VMNotFound"),
        row("has_vm", json!(["$vm"])),
        row("set_vm_metadata", json!(["$vm", {"a": "b"}])).fails("VMNotFound"),
        row("delete_disk", json!(["$disk"])),
        row("delete_disk", json!(["$disk"])).fails("DiskNotFound"),
        row("set_disk_metadata", json!(["$disk", {"a": "b"}])).fails("DiskNotFound"),
        row("delete_snapshot", json!([UNKNOWN])),
        row("delete_stemcell", json!(["$stemcell"])),
    ]
}

/// Runs all calls. Returns each method with its requests.
fn run(cpi: &Cpi<'_>, recorder: &Recorder, rows: Vec<Row>) -> Vec<(&'static str, Vec<Exchange>)> {
    run_rows(rows, |_, method, arguments| {
        recorder.take();
        let response = cpi.run(method, arguments);
        (response, recorder.take())
    })
}

/// Returns what is wrong with the requests: each that is repeated without need.
fn repetitions(cloud: &str, traces: &[(&str, Vec<Exchange>)]) -> String {
    let mut wrong = String::new();
    for (method, trace) in traces {
        for request in trace::repeated(trace) {
            let _ = writeln!(wrong, "{cloud}: {method} repeats {request} without need:{}", trace::describe(trace));
        }
    }
    wrong
}

fn usual_traces(recorder: &Recorder) -> Vec<(&'static str, Vec<Exchange>)> {
    let gateway = Gateway::start(recorder.clone());
    let cpi = Cpi::new(&gateway);
    let before = cpi.api.contents();
    // The token of this call is kept.
    cpi.ok("has_vm", json!(["none"]));
    let traces = run(&cpi, recorder, usual_calls(&cpi));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
    traces
}

/// Returns the traces on a simulator whose changes are complete after this number of reads.
fn traces_on_simulator(reads_before_change: usize) -> Vec<(&'static str, Vec<Exchange>)> {
    let simulator = Simulator::new();
    simulator.set_reads_before_change(reads_before_change);
    usual_traces(&Recorder::new(simulator))
}

fn check_other_calls(cloud: &str, recorder: &Recorder) {
    let gateway = Gateway::start(recorder.clone());
    let cpi = Cpi::new(&gateway)
        .set("enable_auto_anti_affinity", json!(true))
        .set("human_readable_vm_names", json!(true))
        .set("ignore_server_availability_zone", json!(false));
    let before = cpi.api.contents();
    let traces = run(&cpi, recorder, other_calls(&cpi));
    cpi.delete_new_server_groups(&before);
    assert_eq!(repetitions(cloud, &traces), "");
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{cloud}");
}

#[test]
fn no_method_asks_twice_without_need_and_the_table_in_the_readme_has_the_numbers_of_requests() {
    let (direct, waiting) = (traces_on_simulator(0), traces_on_simulator(1));
    for (name, traces) in [("simulator", &direct), ("slow simulator", &waiting)] {
        assert_eq!(repetitions(name, traces), "");
    }
    let mut table =
        String::from("| method | ours | with a login, and one wait per change | Go CPI |\n|---|---:|---:|---:|\n");
    for ((method, direct), (_, waiting)) in direct.iter().zip(&waiting) {
        // Nothing waits on this simulator.
        let ours = trace::without_waiting(direct);
        assert_eq!(ours, direct.len(), "{method}:{}", trace::describe(direct));
        assert_eq!(ours, trace::without_waiting(waiting), "{method}:{}", trace::describe(waiting));
        let go = GO_CPI.iter().find(|(name, _)| name == method).map(|(_, count)| count.to_string());
        let _ = writeln!(table, "| `{method}` | {ours} | {} | {} |", waiting.len() + 1, go.unwrap_or_default());
    }
    check_table("guests/openstack/README.md", &table);
}

#[test]
fn real_services_get_as_many_requests_as_the_simulator() {
    let Some(tenant) = Tenant::take() else { return };
    let traces = usual_traces(&Recorder::new(tenant.cloud()));
    assert_eq!(repetitions("real services", &traces), "");
    for ((method, expected), (_, trace)) in traces_on_simulator(0).iter().zip(&traces) {
        let (expected, found) = (trace::without_waiting(expected), trace::without_waiting(trace));
        assert_eq!(found, expected, "{method}:{}", trace::describe(trace));
    }
}

#[test]
fn no_call_asks_twice_without_need_in_other_situations() {
    check_other_calls("simulator", &Recorder::new(Simulator::new()));
    if let Some(tenant) = Tenant::take() {
        check_other_calls("real services", &Recorder::new(tenant.cloud()));
    }
}
