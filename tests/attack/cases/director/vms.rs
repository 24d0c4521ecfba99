//! VMs that could not be reached, or that would take the address of another:
//! `create_vm` of guests that withhold settings or change networks.

use super::CLASS;
use crate::case::{API, Case};
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use tests::cloud::create_vm;
use tests::{CLOUD_ERROR, Job, Response};

/// Returns a job whose grant has a slot for user-data.
fn job(world: &World) -> Job {
    let slots = json!([{"method": "POST", "path": "/v1/vms", "place": "json:/user_data"}]);
    row::job(world, &json!({"grant": {"slots": slots}, "config": {"agent": {"mbus": "nats://mbus.test:4222"}}}))
}

fn create(world: &World, operations: &Value) -> Result<Response, String> {
    let job = job(world);
    world.reset(row::names(&Value::Null), Served::default())?;
    Ok(create_vm(&job, operations).run())
}

fn post(body: Value) -> Value {
    json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/vms",
           "headers": {"Content-Type": "application/json"}, "body": body})
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(CLASS, "a VM whose settings were never sent", &["vm-unreachable"], |world| {
            let bootstrap = json!({"op": "agent.bootstrap", "encodings": ["base64"]});
            let done = json!({"op": "result", "json": "vm-1"});
            let elsewhere = post(json!({"user_data": "nothing"}));
            for (script, said) in [
                (json!([done]), "without calling `agent.bootstrap`"),
                (json!([bootstrap, done]), "without sending the user-data of `agent.bootstrap`"),
                (json!([bootstrap, elsewhere, done]), "without sending the user-data of `agent.bootstrap`"),
            ] {
                let response = create(world, &script)?;
                response.fails(
                    CLOUD_ERROR,
                    &["guest: `create_vm` created `vm-1` ", said, "the VM's Agent could never be reached"],
                );
            }
            let sent = create(world, &json!([bootstrap, post(json!({"user_data": "{{0.ok}}"})), done]))?;
            assert_eq!(sent.result()[0], "vm-1");
            Ok(())
        })
        .may_contact(API),
        Case::new(CLASS, "additions to agent settings that a server could read as syntax", &["agent-text"], |world| {
            let bootstrap = json!({"op": "agent.bootstrap", "vm_name": "x&description=<i>%26+;'y"});
            let script = json!([bootstrap, post(json!({"user_data": "{{0.ok}}"})), {"op": "result", "json": "vm-1"}]);
            assert_eq!(create(world, &script)?.result()[0], "vm-1");
            let sent: Vec<String> = world.requests().iter().map(|one| one.request.text().to_owned()).collect();
            let [sent] = sent.as_slice() else { return Err(format!("not one request: {sent:?}")) };
            let escaped = r"x\\u0026description\\u003d\\u003ci\\u003e\\u002526\\u002b\\u003b\\u0027y";
            if sent.contains(escaped) { Ok(()) } else { Err(format!("no `{escaped}` in {sent}")) }
        })
        .may_contact(API),
        Case::offline(CLASS, "changes to addresses that the Director chose", &["network-decided"], || {
            for addition in [
                json!({"ip": "10.0.0.6"}),
                json!({"netmask": "255.0.0.0"}),
                json!({"gateway": "10.0.0.66"}),
                json!({"dns": ["6.6.6.6"]}),
            ] {
                let mut network = addition.clone();
                network["name"] = json!("net");
                let script = json!([{"op": "agent.bootstrap", "networks": [network]},
                                    {"op": "error", "kind": "cloud", "message": "{{0.error.message}}"}]);
                create_vm(&Job::default(), &script)
                    .run()
                    .fails(CLOUD_ERROR, &["was chosen by the Director and cannot be changed"]);
            }
        }),
        Case::offline(CLASS, "unknown networks, and invalid routes and addresses", &[], || {
            for (network, said) in [
                (json!({"name": "other"}), "the call has no network `other`"),
                (json!({"name": "net", "mac": "02:00:00:00:00"}), "`mac` must be six hexadecimal octets"),
                (json!({"name": "net", "mac": "02:00:00:00:00:01\nX"}), "`mac` must be six hexadecimal octets"),
                (json!({"name": "net", "routes": "{}"}), "`routes` must be a JSON array of objects"),
                (json!({"name": "net", "ip": "10.0.0.5; reboot"}), "`ip` is not an IP address"),
            ] {
                let script = json!([{"op": "agent.bootstrap", "networks": [network]},
                                    {"op": "error", "kind": "cloud", "message": "{{0.error.message}}"}]);
                create_vm(&Job::default(), &script).run().fails(CLOUD_ERROR, &[said]);
            }
        }),
    ]
}
