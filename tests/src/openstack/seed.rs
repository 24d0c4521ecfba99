//! The initial content of a simulated cloud: the same as in the real cloud of the tests.

use super::clock;
use super::network;
use super::state::{Credential, Project, State, User};
use super::table::Item;
use serde_json::{Value, json};

/// The simulator's origins. A gateway replaces them by its own.
pub(super) const IDENTITY: &str = "http://identity.sim";
pub(super) const IMAGE: &str = "http://image.sim";
pub(super) const COMPUTE: &str = "http://compute.sim";
pub(super) const NETWORK: &str = "http://network.sim";
pub(super) const VOLUME: &str = "http://volume.sim";
pub(super) const LOAD_BALANCER: &str = "http://load-balancer.sim";
pub(super) const METADATA: &str = "http://metadata.sim";

pub(super) const REGION: &str = "RegionOne";
pub(super) const ZONE: &str = "nova";
pub(super) const SHARED_SECRET: &str = "metadata-secret";
/// Cinder's default volume type.
pub(super) const DEFAULT_TYPE: &str = "__DEFAULT__";

const VOLUME_TYPE: &str = "standard";
const PASSWORD: &str = "bosh-password";
const ADMIN_PASSWORD: &str = "admin-password";
/// Name, RAM in MiB, CPUs, disk and ephemeral disk in GiB.
const FLAVORS: [(&str, u64, u64, u64, u64); 3] =
    [("m1.tiny", 512, 1, 1, 0), ("m1.small", 2048, 1, 10, 10), ("m1.medium", 4096, 2, 20, 20)];

/// Returns 32 hex digits that depend only on the text.
pub(super) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// Fills the cloud and returns its description.
pub(super) fn fill(state: &mut State) -> Value {
    let (bosh, admin) = (project(state, "bosh", PASSWORD, false), project(state, "admin", ADMIN_PASSWORD, true));
    let user = state.users[0].id.clone();
    let credential = Credential {
        id: state.hex(),
        name: "bosh".to_owned(),
        secret: format!("secret-{}", state.hex()),
        user: user.clone(),
    };
    let (credential_id, credential_secret) = (credential.id.clone(), credential.secret.clone());
    state.credentials.push(credential);
    let mut flavors = json!({});
    for (name, ram, vcpus, disk, ephemeral) in FLAVORS {
        let id = state.uuid();
        add_flavor(state, &id, name, [ram, vcpus, disk, ephemeral]);
        flavors[name] = json!(id);
    }
    for name in [VOLUME_TYPE, DEFAULT_TYPE] {
        let id = state.uuid();
        let description = (name == DEFAULT_TYPE).then_some("Default Volume Type");
        let view = json!({
            "id": id, "name": name, "is_public": true, "description": description,
            "extra_specs": {}, "os-volume-type-access:is_public": true,
        });
        state.volume_types.add(Item::new(&id, "", view));
    }
    let key = json!({"name": "bosh", "public_key": "ssh-rsa AAAA bosh", "fingerprint": "00:11:22", "type": "ssh"});
    state.keypairs.add(Item {
        hidden: json!({"user": user, "created_at": clock::now() + ".000000"}),
        ..Item::new("bosh", &bosh, key)
    });
    for project in [&bosh, &admin] {
        network::add_security_group(state, project, "default", "Default security group");
    }
    network::add_security_group(state, &bosh, "bosh", "");
    let external = network::add_network(state, &admin, "public", json!({"router:external": true}));
    let outside = json!({"network_id": external, "cidr": "172.24.4.0/24", "enable_dhcp": false});
    let outside = network::add_subnet(state, &admin, &outside);
    let inside = network::add_network(state, &bosh, "bosh", json!({}));
    let pool = json!([{"start": "10.0.0.100", "end": "10.0.0.254"}]);
    let subnet = json!({"network_id": inside, "cidr": "10.0.0.0/24", "allocation_pools": pool});
    let subnet = network::add_subnet(state, &bosh, &subnet);
    network::add_router(state, [&bosh, &inside, &subnet], [&external, &outside]);
    let floating = super::floating_ips::add(state, &bosh, &external);
    json!({
        "auth_url": format!("{IDENTITY}/v3"), "region": REGION, "username": "bosh", "api_key": PASSWORD,
        "domain": "Default", "project": "bosh",
        "application_credential_id": credential_id, "application_credential_secret": credential_secret,
        "endpoints": {
            "compute": format!("{COMPUTE}/v2.1"), "image": IMAGE, "network": NETWORK,
            "volume": format!("{VOLUME}/v3/{bosh}"), "loadbalancer": LOAD_BALANCER,
        },
        "flavors": flavors, "network": inside, "subnet": subnet, "external_network": external,
        "floating_ip": floating, "security_group": "bosh", "key_name": "bosh", "availability_zone": ZONE,
        "volume_type": VOLUME_TYPE, "metadata_url": METADATA, "metadata_proxy_shared_secret": SHARED_SECRET,
        "admin": {"username": "admin", "api_key": ADMIN_PASSWORD, "project": "admin"},
    })
}

fn project(state: &mut State, name: &str, password: &str, admin: bool) -> String {
    let (id, user) = (state.hex(), state.hex());
    state.projects.push(Project { id: id.clone(), name: name.to_owned() });
    state.users.push(User {
        id: user,
        name: name.to_owned(),
        password: password.to_owned(),
        project: id.clone(),
        admin,
    });
    id
}

/// Adds a flavor; `sizes` are RAM, CPUs, disk and ephemeral disk.
pub(super) fn add_flavor(state: &mut State, id: &str, name: &str, sizes: [u64; 4]) {
    let [ram, vcpus, disk, ephemeral] = sizes;
    let view = json!({
        "id": id, "name": name, "ram": ram, "disk": disk, "swap": "", "OS-FLV-EXT-DATA:ephemeral": ephemeral,
        "OS-FLV-DISABLED:disabled": false, "vcpus": vcpus, "os-flavor-access:is_public": true, "rxtx_factor": 1.0,
        "links": [
            {"rel": "self", "href": format!("{COMPUTE}/v2.1/flavors/{id}")},
            {"rel": "bookmark", "href": format!("{COMPUTE}/flavors/{id}")},
        ],
    });
    state.flavors.add(Item { hidden: json!({"created": clock::now()}), ..Item::new(id, "", view) });
}
