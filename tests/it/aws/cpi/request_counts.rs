//! The requests of each method: none is sent twice, and their numbers are those of the table in
//! `guests/aws/README.md`, which `UPDATE_EXPECT=1` rewrites.

use super::{Cpi, with};
use crate::request_counts::{Row, check_table, row, run_rows};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use tests::aws::{Gateway, Service, Simulator};
use tests::gateway::{RecordedRequest, Services as _};

/// A call, and its row of the table.
struct Case {
    /// Which of the jobs runs the call.
    job: usize,
    /// What the table says of the call besides its method. Calls without a text are not in the table.
    situation: Option<&'static str>,
    /// The requests of bosh-aws-cpi, as they were counted on moto.
    upstream: &'static str,
    row: Row,
}

/// The jobs: with default properties, with a property that saves a request, and with encrypted stemcells.
const DEFAULT: usize = 0;
const WITHOUT_TYPES: usize = 1;
const ENCRYPTED: usize = 2;

fn case(situation: &'static str, upstream: &'static str, row: Row) -> Case {
    Case { job: DEFAULT, situation: Some(situation), upstream, row }
}

fn unlisted(row: Row) -> Case {
    Case { job: DEFAULT, situation: None, upstream: "", row }
}

impl Case {
    fn with(self, job: usize) -> Case {
        Case { job, ..self }
    }
}

fn stemcells(cpi: &Cpi<'_>) -> Vec<Case> {
    let light = json!({"name": "light", "version": "1", "ami": {cpi.region(): cpi.cloud["image"]}});
    let heavy = json!({"name": "little", "version": "1", "architecture": "x86_64", "disk": 1024});
    let tags = json!({"tags": {"team": "a"}});
    let heavy_upstream = "9, and two of the metadata service, on an instance of EC2 only";
    vec![
        case(", light", "1", row("create_stemcell", json!([cpi.image(), light]))),
        case(", light, with tags", "2", row("create_stemcell", json!([cpi.image(), light, tags]))),
        case(", light and encrypted", "3", row("create_stemcell", json!([cpi.image(), light])).returns("$encrypted"))
            .with(ENCRYPTED),
        unlisted(row("delete_stemcell", json!(["$encrypted"]))),
        case(", heavy", heavy_upstream, row("create_stemcell", json!([cpi.image(), heavy])).returns("$heavy")),
        case(", heavy", "at least 3", row("delete_stemcell", json!(["$heavy"]))),
    ]
}

fn vms(cpi: &Cpi<'_>) -> Vec<Case> {
    let mut networks = cpi.manual("10.0.0.70");
    networks["public"] = json!({"type": "vip", "ip": cpi.cloud["elastic_ip"], "cloud_properties": {}});
    let connected = with(
        cpi.small(),
        json!({
            "security_groups": [cpi.cloud["security_group_name"]], "lb_target_groups": [cpi.cloud["target_group"]],
            "advertised_routes": [{"table_id": cpi.cloud["route_table"], "destination": "10.9.0.0/16"}],
        }),
    );
    let forwarding = with(connected.clone(), json!({"source_dest_check": false}));
    let metadata = json!({"director": "bosh", "deployment": "d", "job": "web", "index": "0", "name": "web/1"});
    let size = json!({"ram": 600, "cpu": 1, "ephemeral_disk_size": 5000});
    let new = |properties: Value, networks: &Value| row("create_vm", cpi.vm(properties, networks.clone()));
    vec![
        case("", "", row("calculate_vm_cloud_properties", json!([size]))),
        case(
            ", one manual network, security groups by ID",
            "",
            new(cpi.small(), &cpi.manual("10.0.0.71")).returns("$vm"),
        ),
        case(
            ", with a vip, a target group, a route and security groups by name",
            "20",
            new(connected, &networks).returns("$connected"),
        ),
        unlisted(row("delete_vm", json!(["$connected"]))),
        case(", with the same and `source_dest_check: false`", "21", new(forwarding, &networks).returns("$forwarding")),
        case(", with a target group and a route", "2", row("delete_vm", json!(["$forwarding"]))),
        case("", "2", row("has_vm", json!(["$vm"]))),
        case("", "2, and one for each volume", row("set_vm_metadata", json!(["$vm", metadata]))),
        case("", "1", row("reboot_vm", json!(["$vm"]))),
    ]
}

fn disks() -> Vec<Case> {
    vec![
        case("", "3", row("create_disk", json!([1024, {}, "$vm"])).returns("$disk")),
        case("", "1", row("has_disk", json!(["$disk"]))),
        case("", "1", row("set_disk_metadata", json!(["$disk", {"deployment": "d"}]))),
        case("", "4", row("attach_disk", json!(["$vm", "$disk"]))),
        case("", "1", row("get_disks", json!(["$vm"]))),
        case("", "3", row("snapshot_disk", json!(["$disk", {"deployment": "d"}])).returns("$snapshot")),
        case("", "1", row("delete_snapshot", json!(["$snapshot"]))),
        case("", "4", row("detach_disk", json!(["$vm", "$disk"]))),
        case(", with `enable_describe_instance_types: false`", "3", row("attach_disk", json!(["$vm", "$disk"])))
            .with(WITHOUT_TYPES),
        unlisted(row("detach_disk", json!(["$vm", "$disk"]))),
        case("", "3", row("resize_disk", json!(["$disk", 2048]))),
        case("", "2", row("delete_disk", json!(["$disk"]))),
        // Another disk, because EC2 optimizes a volume for hours after a change, and refuses another change.
        unlisted(row("create_disk", json!([1024, {}, "$vm"])).returns("$second")),
        case("", "does not have it", row("update_disk", json!(["$second", 2048, {}]))),
        unlisted(row("delete_disk", json!(["$second"]))),
        case(", one manual network", "2", row("delete_vm", json!(["$vm"]))),
    ]
}

/// Returns the requests that were sent again without need: a read is needed again only after a change.
fn repeated(trace: &[RecordedRequest<Service>]) -> Vec<String> {
    let (mut known, mut changes, mut repeated) = (HashSet::new(), 0, Vec::new());
    for request in trace {
        let is_read = request.operation.as_deref().is_some_and(|operation| request.service.is_read(operation));
        changes += usize::from(!is_read);
        if !known.insert((is_read.then_some(changes), request.operation.as_deref(), &request.target, &request.digest)) {
            repeated.push(request.line());
        }
    }
    repeated
}

#[test]
fn no_method_asks_twice_and_the_table_in_the_readme_has_the_numbers_of_requests() {
    let simulator = Simulator::new();
    simulator.set_reads_before_change(0);
    let gateway = Gateway::start(simulator);
    let jobs = [json!({}), json!({"enable_describe_instance_types": false}), json!({"encrypted": true})]
        .map(|properties| Cpi::with(&gateway, 3, &properties));
    let default = &jobs[DEFAULT];
    let before = default.contents();
    let cases = [vms(default), disks(), stemcells(default)].into_iter().flatten();
    let (listed, rows): (Vec<_>, Vec<Row>) =
        cases.map(|Case { job, situation, upstream, row }| ((job, situation, upstream), row)).unzip();
    let traces = run_rows(rows, |at, method, arguments| {
        gateway.clear_records();
        let response = jobs[listed[at].0].run(method, arguments);
        (response, gateway.records())
    });
    assert_eq!(default.contents(), before);

    let mut table = String::from("| method | ours | bosh-aws-cpi |\n|---|---:|---:|\n");
    for ((_, situation, upstream), (method, trace)) in listed.into_iter().zip(traces) {
        let lines: Vec<String> = trace.iter().map(RecordedRequest::line).collect();
        assert_eq!(repeated(&trace), Vec::<String>::new(), "{method}{}: {lines:?}", situation.unwrap_or_default());
        let blocks = lines.iter().filter(|line| line.starts_with("PutSnapshotBlock ")).count();
        let ours = trace.len() - blocks;
        let Some(situation) = situation else { continue };
        if let ("create_vm", Ok(upstream)) = (method, upstream.parse::<usize>()) {
            assert!(ours * 2 <= upstream, "{method}{situation}: {lines:?}");
        }
        let more = if blocks > 0 { ", and one for each block that is not zero" } else { "" };
        let upstream = if upstream.is_empty() { String::new() } else { format!("{upstream} ") };
        let _ = writeln!(table, "| `{method}`{situation} | {ours}{more} | {upstream}|");
    }
    check_table("guests/aws/README.md", &table);
}
