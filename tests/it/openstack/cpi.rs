//! The OpenStack guest through the binary, as a Director uses it, one suite for
//! every cloud: `on_each_cloud` hands each test a gateway.
//!
//! A `Cpi` is a job with a preset as it is shipped: nothing here grants more.
//! Every answer is searched for the secrets of the job and for every token that
//! went over the wire.

mod again;
mod faults;
mod gone;
mod least;
mod life;
pub(crate) mod matrix;
mod plays;
mod pools;
mod refused;
mod tls;
mod trouble;
mod versions;

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use tests::openstack::{Api, Contents, Gateway, Service};
use tests::registry_server::RegistryServer;
use tests::response::CANARY;
use tests::{Call, Job, Response, archive, dist, job};

const DIRECTOR: &str = "5f0e7d9a-6f0c-4f9d-9d53-0c9a5c0b7a11";

/// Real services take their time on a busy machine.
const GUARD: Duration = Duration::from_secs(240);

/// How the job logs in, each with the preset for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Password,
    ProjectId,
    Credential,
}

impl Way {
    const ALL: [Way; 3] = [Way::Password, Way::ProjectId, Way::Credential];

    fn preset(self) -> PathBuf {
        dist::root().join("guests/openstack").join(match self {
            Way::Password => "policy.json",
            Way::ProjectId => "policy-project-id.json",
            Way::Credential => "policy-application-credential.json",
        })
    }
}

/// A Director's CPI on a cloud.
struct Cpi<'g> {
    gateway: &'g Gateway,
    cloud: Value,
    api: Api,
    job: Job,
    /// Of the API, and of the stemcell's.
    version: u32,
    registry: Option<(tempfile::TempDir, RegistryServer)>,
}

impl<'g> Cpi<'g> {
    fn new(gateway: &'g Gateway) -> Cpi<'g> {
        Cpi::by(gateway, Way::Password)
    }

    fn by(gateway: &'g Gateway, way: Way) -> Cpi<'g> {
        let cloud = gateway.cloud();
        let api = Api::tenant(&cloud);
        let mut preset = json!({"file": "openstack.json", "addresses": ["127.0.0.0/8"]});
        let mut properties = properties(&cloud, way, &api.project());
        if cloud["ca"].is_null() {
            preset["plain_http"] = json!(true);
        } else {
            preset["tls"] = json!({"ca": "${connection_options.ca_cert}"});
            properties["connection_options"] = json!({"ca_cert": cloud["ca"]});
        }
        let job = Job::default()
            .guest(&dist::openstack())
            .properties(properties)
            .policy(json!({"version": 1, "presets": [preset]}))
            .configure(|config| {
                config["allow_local"] = json!(true);
                config["agent"] = agent();
            });
        let text = std::fs::read(way.preset()).unwrap_or_else(|error| panic!("{way:?}: {error}"));
        job::write(&job.path("config/openstack.json"), &text);
        prepare(&job);
        Cpi { gateway, cloud, api, job, version: 2, registry: None }
    }

    /// Another version of the API; the first has a registry.
    fn version(mut self, version: u32) -> Cpi<'g> {
        self.version = version;
        if version == 1 {
            let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
            let registry = RegistryServer::start(dir.path());
            self.job = self.job.configure(|config| config["registry"] = registry.section());
            self.registry = Some((dir, registry));
        }
        self
    }

    fn set(mut self, name: &str, value: Value) -> Cpi<'g> {
        self.job = self.job.configure(|config| config["properties"][name] = value);
        self
    }

    fn call(&self, method: &str, arguments: Value) -> Call<'_> {
        let call = self.job.call(method, arguments);
        match (method, self.version) {
            ("info", _) => call,
            ("create_vm" | "delete_vm" | "attach_disk" | "detach_disk", 1) => call.api_version(1).stemcell(1),
            (_, version) => call.api_version(version),
        }
    }

    #[track_caller]
    fn ask(&self, method: &str, arguments: Value) -> Response {
        let response = self.call(method, arguments).guard(GUARD).run();
        self.keeps_secrets(&response);
        response
    }

    /// The result of a call that must succeed.
    #[track_caller]
    fn ok(&self, method: &str, arguments: Value) -> Value {
        self.ask(method, arguments).result().clone()
    }

    /// The same where it is a cloud ID.
    #[track_caller]
    fn cid(&self, method: &str, arguments: Value) -> String {
        let result = self.ok(method, arguments);
        result.as_str().unwrap_or_else(|| panic!("{method}: {result} is no cloud ID")).to_owned()
    }

    /// The cloud ID of a VM in either shape, and its networks.
    #[track_caller]
    fn create_vm(&self, arguments: Value) -> (String, Value) {
        let result = self.ok("create_vm", arguments);
        let (cid, networks) = if self.version == 1 { (&result, &Value::Null) } else { (&result[0], &result[1]) };
        (cid.as_str().unwrap_or_else(|| panic!("{result} has no cloud ID")).to_owned(), networks.clone())
    }

    /// A small stemcell, uploaded.
    #[track_caller]
    fn stemcell(&self) -> String {
        self.cid("create_stemcell", json!([self.image(), {"name": "little", "version": "1", "disk_format": "raw"}]))
    }

    /// The file of a stemcell as a client unpacks it.
    fn image(&self) -> PathBuf {
        let path = self.job.path("image");
        job::write(&path, &archive::gzip(&archive::tar(&[("root.img", &root_image())])));
        path
    }

    /// Server groups outlive VMs; tests clean up after themselves.
    fn drop_groups(&self, before: &Contents) {
        for group in self.api.server_groups() {
            let id = group["id"].as_str().unwrap_or_default();
            if !before.0.iter().any(|line| line.contains(id)) {
                self.api.request(Service::Compute, "DELETE", &format!("/os-server-groups/{id}"), None);
            }
        }
    }

    #[track_caller]
    fn keeps_secrets(&self, response: &Response) {
        let said = format!("{}{}", response.json, response.stderr);
        let records = self.gateway.records();
        let tokens = records.iter().filter_map(|record| record.header("x-auth-token"));
        let own = ["api_key", "application_credential_secret"].map(|name| self.cloud[name].as_str().unwrap_or("?"));
        for secret in tokens.chain(own) {
            assert!(!said.contains(secret), "a secret is in the output: {said}");
        }
    }
}

fn properties(cloud: &Value, way: Way, project: &str) -> Value {
    let mut properties = json!({
        "auth_url": cloud["auth_url"], "region": cloud["region"], "endpoints": cloud["endpoints"],
        "default_key_name": cloud["key_name"], "default_security_groups": [cloud["security_group"]],
        "state_timeout": 180, "wait_resource_poll_interval": 1,
    });
    let names: &[&str] = match way {
        Way::Password => &["username", "api_key", "project", "domain"],
        Way::ProjectId => &["username", "api_key", "domain"],
        Way::Credential => &["application_credential_id", "application_credential_secret"],
    };
    for name in names {
        properties[name] = cloud[name].clone();
    }
    if way == Way::ProjectId {
        properties["project_id"] = json!(project);
    }
    properties
}

fn agent() -> Value {
    json!({
        "mbus": format!("nats://nats:{CANARY}-mbus@10.0.0.6:4222"), "ntp": ["10.0.0.7"],
        "blobstore": {"provider": "dav", "options": {
            "endpoint": "http://10.0.0.6:25250", "user": "agent", "password": format!("{CANARY}-blobs"),
        }},
    })
}

/// Compiles the guest once, before tests race for it.
fn prepare(job: &Job) {
    static PREPARED: OnceLock<()> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let formats = json!(["openstack-raw", "openstack-qcow2", "openstack-light"]);
        assert_eq!(job.call("info", json!([])).run().result()["stemcell_formats"], formats);
    });
}

fn root_image() -> Vec<u8> {
    b"a little root disk".repeat(1000)
}

/// A manual network with this address.
fn manual(cloud: &Value, ip: &str) -> Value {
    json!({"net": {
        "type": "manual", "ip": ip, "netmask": "255.255.255.0", "gateway": "10.0.0.1", "dns": ["10.0.0.2"],
        "default": ["dns", "gateway"], "cloud_properties": {"net_id": cloud["network"]},
    }})
}

/// The arguments of a small VM with this address.
fn small(cpi: &Cpi<'_>, stemcell: &str, ip: &str) -> Value {
    let networks = manual(&cpi.cloud, ip);
    json!(["agent-1", stemcell, {"instance_type": "m1.small"}, networks, [], tests::cloud::env()])
}
