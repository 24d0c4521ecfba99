//! Native tests of the CPI's methods. They use the SDK's fake host and a small cloud
//! in memory (`cloud`), which lists the objects that are left in it.

mod addresses;
mod cloud;
mod disks;
mod failures;
mod groups;
mod leftovers;
mod log_lines;
mod networks;
mod policies;
mod pools;
mod properties;
mod read_ahead;
mod session;
mod stemcells;
mod vms;

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::{Fake, Installed};
use wasm_cpi_sdk::{Cpi, Json, Network, VmRequest};

use crate::OpenStack;
use cloud::{Cloud, NETWORK, Shared};

/// Returns the properties of most tests.
fn properties() -> Value {
    json!({
        "auth_url": "https://keystone.test/v3", "username": "bosh", "api_key": "<seal>", "project": "bosh",
        "domain": "Default", "default_key_name": "bosh", "default_security_groups": ["bosh"],
        "endpoints": {
            "compute": "https://nova.test/v2.1", "image": "https://glance.test", "network": "https://neutron.test",
            "volume": "https://cinder.test/v3/project-1",
        },
    })
}

/// Returns the properties of a cloud with load balancers.
fn properties_with_pools() -> Value {
    let mut all = properties();
    all["endpoints"]["loadbalancer"] = json!("https://octavia.test");
    all
}

fn properties_with(more: Value) -> Value {
    let mut all = properties();
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

/// Starts a call with these properties in a new cloud.
fn start(properties: Value) -> (Installed, Shared) {
    start_with(properties, |fake| fake)
}

fn start_with(properties: Value, prepare: impl FnOnce(Fake) -> Fake) -> (Installed, Shared) {
    let cloud = Cloud::shared();
    let behind = Shared::clone(&cloud);
    let fake = Fake::new()
        .properties(properties)
        .session("keystone", cloud::login_response())
        .serve(move |request| behind.borrow_mut().answer(request));
    (prepare(fake).install(), cloud)
}

fn cpi() -> OpenStack {
    OpenStack::open().unwrap()
}

fn network(name: &str, kind: &str, ip: Option<&str>, cloud_properties: Value) -> Network {
    let document = format!("networks.{name}.cloud_properties");
    Network {
        name: name.into(),
        kind: kind.into(),
        ip: ip.map(Into::into),
        netmask: None,
        prefix: None,
        gateway: None,
        dns: vec![],
        default: vec![],
        cloud_properties: Json::named(document, cloud_properties.to_string()),
        extra: Json::default(),
    }
}

fn manual() -> Network {
    network("default", "manual", Some("10.0.0.5"), json!({"net_id": NETWORK}))
}

fn vip() -> Network {
    network("public", "vip", Some(cloud::FLOATING_IP), json!({}))
}

fn request(cloud_properties: Value, networks: Vec<Network>) -> VmRequest {
    VmRequest {
        agent_id: "agent-1".into(),
        stemcell: cloud::IMAGE.into(),
        cloud_properties: Json::named("cloud_properties", cloud_properties.to_string()),
        networks,
        disks: vec![],
        env: Json::raw(r#"{"bosh": {"group": "web", "tags": {"team": "a"}}}"#),
    }
}

fn small() -> Value {
    json!({"instance_type": "m1.small"})
}
