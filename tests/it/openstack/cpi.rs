//! The OpenStack guest, called through the binary as a Director does. The same tests run
//! on every cloud: `on_each_cloud` passes a gateway to each test.
//!
//! A `Cpi` is a job with one of the shipped presets and without further grants. Every
//! response is searched for the secrets of the job and for every token that the gateway
//! saw.

mod anti_affinity;
mod cloud_errors;
mod endings;
pub(crate) mod fault_matrix;
mod faults;
mod invalid_properties;
mod least_privilege;
mod lifecycle;
mod log_lines;
mod missing_resources;
mod pools;
mod request_counts;
mod retries;
mod scenarios;
mod tls;
mod versions;

use serde_json::{Value, json};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use tests::openstack::{Api, Contents, Gateway, Service};
use tests::registry_server::RegistryServer;
use tests::response::CANARY;
use tests::{Call, Job, Response, archive, dist, job};

const DIRECTOR: &str = "5f0e7d9a-6f0c-4f9d-9d53-0c9a5c0b7a11";

/// Real services are slow on a busy machine.
const GUARD: Duration = Duration::from_secs(240);

/// The kinds of login. Each has a preset of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Login {
    Password,
    ProjectId,
    Credential,
}

impl Login {
    const ALL: [Login; 3] = [Login::Password, Login::ProjectId, Login::Credential];

    fn preset(self) -> PathBuf {
        dist::root().join("guests/openstack").join(match self {
            Login::Password => "policy.json",
            Login::ProjectId => "policy-project-id.json",
            Login::Credential => "policy-application-credential.json",
        })
    }
}

/// A Director's CPI on a cloud.
struct Cpi<'g> {
    gateway: &'g Gateway,
    cloud: Value,
    api: Api,
    job: Job,
    /// The version of the API. For version 1, the stemcell has that version as well.
    version: u32,
    registry: Option<(tempfile::TempDir, RegistryServer)>,
}

impl<'g> Cpi<'g> {
    fn new(gateway: &'g Gateway) -> Cpi<'g> {
        Cpi::with_login(gateway, Login::Password)
    }

    fn with_login(gateway: &'g Gateway, login: Login) -> Cpi<'g> {
        let cloud = gateway.cloud();
        let api = Api::tenant(&cloud);
        let mut preset = json!({"file": "openstack.json", "addresses": ["127.0.0.0/8"]});
        let mut properties = properties(&cloud, login, &api.project());
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
        let text = std::fs::read(login.preset()).unwrap_or_else(|error| panic!("{login:?}: {error}"));
        job::write(&job.path("config/openstack.json"), &text);
        prepare(&job);
        Cpi { gateway, cloud, api, job, version: 2, registry: None }
    }

    /// Sets the version of the API. Version 1 uses a registry.
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

    /// Makes every call log in, so that a call has the same requests whatever was called before.
    fn with_login_in_each_call(mut self) -> Cpi<'g> {
        self.job = self.job.configure(|config| config["keep_tokens"] = json!(false));
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
            ("create_vm" | "delete_vm" | "attach_disk" | "detach_disk", 1) => {
                call.api_version(1).stemcell_api_version(1)
            }
            (_, version) => call.api_version(version),
        }
    }

    #[track_caller]
    fn run(&self, method: &str, arguments: Value) -> Response {
        let response = self.call(method, arguments).guard(GUARD).run();
        self.check_no_secrets(&response);
        response
    }

    /// Returns the result of a call that must succeed.
    #[track_caller]
    fn ok(&self, method: &str, arguments: Value) -> Value {
        self.run(method, arguments).result().clone()
    }

    /// Returns the result of a call that must succeed with a cloud ID.
    #[track_caller]
    fn cid(&self, method: &str, arguments: Value) -> String {
        let result = self.ok(method, arguments);
        result.as_str().unwrap_or_else(|| panic!("{method}: {result} is not a cloud ID")).to_owned()
    }

    /// Returns the cloud ID of a new VM, and its networks, which version 1 does not return.
    #[track_caller]
    fn create_vm(&self, arguments: Value) -> (String, Value) {
        let result = self.ok("create_vm", arguments);
        let (cid, networks) = if self.version == 1 { (&result, &Value::Null) } else { (&result[0], &result[1]) };
        (cid.as_str().unwrap_or_else(|| panic!("{result} has no cloud ID")).to_owned(), networks.clone())
    }

    /// Creates VMs with these addresses in one instance group, all at once, and returns their
    /// cloud IDs.
    #[track_caller]
    fn create_vms_in_parallel(&self, stemcell: &str, group: &str, addresses: &[String]) -> Vec<String> {
        std::thread::scope(|threads| {
            let create = |ip: &String| {
                let mut arguments = small_vm(self, stemcell, ip);
                arguments[2]["instance_type"] = json!("m1.tiny");
                arguments[5]["bosh"]["group"] = json!(group);
                threads.spawn(move || self.create_vm(arguments).0)
            };
            let calls: Vec<_> = addresses.iter().map(create).collect();
            calls.into_iter().map(|call| call.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    /// Uploads a small stemcell and returns its cloud ID.
    #[track_caller]
    fn stemcell(&self) -> String {
        self.cid("create_stemcell", json!([self.image(), {"name": "little", "version": "1", "disk_format": "raw"}]))
    }

    /// Writes the image file of a stemcell, as a client unpacks it, and returns its path.
    fn image(&self) -> PathBuf {
        let path = self.job.path("image");
        job::write(&path, &archive::gzip(&archive::tar(&[("root.img", &root_image())])));
        path
    }

    /// Deletes the server groups that are new. They are not deleted with their VMs.
    fn delete_new_server_groups(&self, before: &Contents) {
        for group in self.api.server_groups() {
            let id = group["id"].as_str().unwrap_or_default();
            if !before.0.iter().any(|line| line.contains(id)) {
                self.api.request(Service::Compute, "DELETE", &format!("/os-server-groups/{id}"), None);
            }
        }
    }

    /// Checks that the response and the log hold no secret and no token.
    #[track_caller]
    fn check_no_secrets(&self, response: &Response) {
        let output = format!("{}{}", response.json, response.stderr);
        let records = self.gateway.records();
        let tokens = records.iter().filter_map(|record| record.header("x-auth-token"));
        let own = ["api_key", "application_credential_secret"].map(|name| self.cloud[name].as_str().unwrap_or("?"));
        for secret in tokens.chain(own) {
            assert!(!output.contains(secret), "a secret is in the output: {output}");
        }
    }
}

fn properties(cloud: &Value, login: Login, project: &str) -> Value {
    let mut properties = json!({
        "auth_url": cloud["auth_url"], "region": cloud["region"], "endpoints": cloud["endpoints"],
        "default_key_name": cloud["key_name"], "default_security_groups": [cloud["security_group"]],
        "state_timeout": 180, "wait_resource_poll_interval": 1,
    });
    let names: &[&str] = match login {
        Login::Password => &["username", "api_key", "project", "domain"],
        Login::ProjectId => &["username", "api_key", "domain"],
        Login::Credential => &["application_credential_id", "application_credential_secret"],
    };
    for name in names {
        properties[name] = cloud[name].clone();
    }
    if login == Login::ProjectId {
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

/// Compiles the guest once, so that concurrent tests do not all compile it.
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

/// Returns a manual network with this address, as a call has it.
fn manual_network(cloud: &Value, ip: &str) -> Value {
    json!({"net": {
        "type": "manual", "ip": ip, "netmask": "255.255.255.0", "gateway": "10.0.0.1", "dns": ["10.0.0.2"],
        "default": ["dns", "gateway"], "cloud_properties": {"net_id": cloud["network"]},
    }})
}

/// Returns the arguments of `create_vm` for a small VM with this address.
fn small_vm(cpi: &Cpi<'_>, stemcell: &str, ip: &str) -> Value {
    let networks = manual_network(&cpi.cloud, ip);
    json!(["agent-1", stemcell, {"instance_type": "m1.small"}, networks, [], tests::cloud::env()])
}
