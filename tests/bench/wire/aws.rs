//! `create_vm` of the AWS guest, in turns with the peer: each call of the runtime is
//! followed by a process of the peer that signs and sends the same requests.
//!
//! The changes of this simulated AWS are complete at once, so nothing waits for it. It
//! refuses requests that are not signed, also those of the peer.

use super::access::Signatures;
use super::cpi::{Cpi, Site};
use super::methods::{COLUMNS, Method};
use super::peer::Peer;
use crate::Bench;
use crate::report::{Report, Table, Target};
use serde_json::{Value, json};
use tests::aws::{Service, Simulator};
use tests::gateway::Backend as _;

const ONE_NETWORK: &str = "create_vm, one manual network";
const CONNECTED: &str = "create_vm, with a vip, a target group and a route";

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let simulator = Simulator::new();
    simulator.set_reads_before_change(0);
    let site = Site::new(simulator.clone());
    let cloud = site.cloud.description();
    let cpi = Cpi::install(manifest(&cloud))?;
    let peer = Peer::new(bench, site.recorder.cloud(), Signatures(simulator));
    let mut methods = [
        // Each request waits for the one before, so there is nothing to save beside the peer.
        (ONE_NETWORK, one_network(&cloud), Target::AtMost(1.1)),
        (CONNECTED, connected(&cloud), Target::AtMost(0.8)),
    ]
    .map(|(name, arguments, target)| (name, arguments, target, Method::default()));
    for _ in 0..if bench.quick { 5 } else { 25 } {
        for (name, arguments, _, method) in &mut methods {
            let call = cpi.call(bench, &site, "create_vm", arguments.clone())?;
            method.add(&call, &peer.run(bench, name, &call)?);
            // It releases the addresses and the route for the next VM.
            cpi.call::<Service>(bench, &site, "delete_vm", json!([call.result[0]]))?;
        }
    }
    let per_need = methods.iter().map(|(.., method)| method.per_need).fold(0.0, f64::max);
    let name = "AWS: connections of a call vs. those for its connection keys and requests at once";
    report.figure(name, per_need, "x", Target::AtMost(1.0));
    let rows = methods.iter().map(|(name, .., method)| method.row(name)).collect();
    for (name, _, target, method) in methods {
        report.figure(format!("AWS: {name} vs. Go"), method.ratio(), "x", target);
    }
    report.table(Table { name: "AWS, without cloud-side waiting".to_owned(), columns: COLUMNS.to_vec(), rows });
    Ok(())
}

fn manifest(cloud: &Value) -> Value {
    let preset = |file: &str| {
        json!({
            "package": "wasm-cpi-guests", "file": file, "addresses": ["127.0.0.0/8"],
            "tls": {"ca": "${connection_options.ca_cert}"},
        })
    };
    json!({
        "guest": {"file": "aws.wasm"}, "allow_local": true, "agent": {"mbus": "nats://127.0.0.1:4222"},
        "aws": {
            "region": cloud["region"], "access_key_id": cloud["access_key_id"],
            "secret_access_key": cloud["secret_access_key"], "default_key_name": cloud["key_name"],
            "default_security_groups": [cloud["security_group"]], "connection_options": {"ca_cert": cloud["ca"]},
            "ec2_endpoint": cloud["endpoints"]["ec2"], "elb_endpoint": cloud["endpoints"]["elb"],
        },
        "policy": {"presets": [
            {"package": "wasm-cpi-guests", "file": "aws.json"}, preset("aws-ec2-endpoint.json"),
            preset("aws-elb-endpoint.json"),
        ]},
    })
}

/// Returns the arguments of `create_vm` for a VM with one network, whose security group is named by its ID.
fn one_network(cloud: &Value) -> Value {
    let stemcell = format!("{} light", cloud["image"].as_str().unwrap_or_default());
    let properties = json!({"instance_type": cloud["instance_type"], "availability_zone": cloud["availability_zone"]});
    let networks = json!({"default": {
        "type": "manual", "ip": "10.0.0.11", "netmask": "255.255.255.0", "gateway": "10.0.0.1", "dns": ["10.0.0.2"],
        "default": ["dns", "gateway"], "cloud_properties": {"subnet": cloud["subnet"]},
    }});
    json!(["agent-1", stemcell, properties, networks, [], tests::cloud::env()])
}

/// Returns the arguments for a VM that is connected to more, and whose security group is named by its name.
fn connected(cloud: &Value) -> Value {
    let mut arguments = one_network(cloud);
    arguments[2]["security_groups"] = json!([cloud["security_group_name"]]);
    arguments[2]["lb_target_groups"] = json!([cloud["target_group"]]);
    arguments[2]["advertised_routes"] = json!([{"table_id": cloud["route_table"], "destination": "10.9.0.0/16"}]);
    arguments[3]["public"] = json!({"type": "vip", "ip": cloud["elastic_ip"], "cloud_properties": {}});
    arguments
}
