//! The AWS guest, called through the rendered job of the release as a Director does, on the simulator and on moto.
//!
//! A `Cpi` is a job with the shipped presets and without further grants. Every response is searched for the
//! secrets of the job.

mod disks;
mod fault_matrix;
mod faults;
mod least_privilege;
mod lifecycle;
mod moto;
mod request_counts;
mod scenarios;
mod stemcells;
mod vms;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tests::aws::{Client, Gateway, Service, element};
use tests::registry_server::RegistryServer;
use tests::response::CANARY;
use tests::{Call, Job, Response, archive, dist, job};

/// The machine may be busy.
const GUARD: Duration = Duration::from_secs(240);

/// A Director's CPI on a cloud.
struct Cpi<'g> {
    /// Absent on moto, which has none in front of it.
    gateway: Option<&'g Gateway>,
    cloud: Value,
    client: Client,
    job: Job,
    /// The version of the API. For version 1, the stemcell has that version as well.
    version: u32,
    registry: Option<(tempfile::TempDir, RegistryServer)>,
}

impl<'g> Cpi<'g> {
    fn new(gateway: &'g Gateway) -> Cpi<'g> {
        Cpi::with(gateway, 2, &json!({}))
    }

    /// Returns a CPI with more properties, for a version of the API. Version 1 uses a registry.
    fn with(gateway: &'g Gateway, version: u32, more: &Value) -> Cpi<'g> {
        Cpi { gateway: Some(gateway), ..Cpi::on(gateway.cloud(), version, more) }
    }

    /// Returns a CPI on the cloud of this description.
    fn on(cloud: Value, version: u32, more: &Value) -> Cpi<'g> {
        let mut aws = json!({
            "region": cloud["region"], "access_key_id": cloud["access_key_id"],
            "secret_access_key": cloud["secret_access_key"], "default_key_name": cloud["key_name"],
            "default_security_groups": [cloud["security_group"]],
            "ec2_endpoint": cloud["endpoints"]["ec2"], "elb_endpoint": cloud["endpoints"]["elb"],
            "ebs_endpoint": cloud["endpoints"]["ebs"],
        });
        more.as_object().into_iter().flatten().for_each(|(name, value)| aws[name] = value.clone());
        let local = |file: &str| json!({"package": "wasm-cpi-guests", "file": file, "addresses": ["127.0.0.0/8"], "plain_http": true});
        let mut manifest = json!({
            "guest": {"file": "aws.wasm"}, "cache": dist::shared_cache(), "allow_local": true, "aws": aws,
            "policy": {"presets": [
                {"package": "wasm-cpi-guests", "file": "aws.json"}, local("aws-ec2-endpoint.json"),
                local("aws-elb-endpoint.json"), local("aws-ebs-endpoint.json"),
            ]},
            "agent": {"mbus": format!("nats://nats:{CANARY}-mbus@10.0.0.6:4222")}, "ntp": ["10.0.0.7"],
        });
        let mut registry = None;
        if version == 1 {
            let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
            let server = RegistryServer::start(dir.path());
            let section = server.section();
            manifest["registry"] =
                json!({"endpoint": section["endpoint"], "username": section["user"], "password": section["password"]});
            registry = Some((dir, server));
        }
        let job = Job::installed(&manifest);
        assert_eq!(job.call("info", json!([])).run().result()["stemcell_formats"], json!(["aws-raw", "aws-light"]));
        let client = Client::new(&cloud);
        Cpi { gateway: None, cloud, client, job, version, registry }
    }

    fn call(&self, method: &str, arguments: Value) -> Call<'_> {
        let call = self.job.call(method, arguments).guard(GUARD);
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
        let response = self.call(method, arguments).run();
        self.check_no_secrets(&response);
        response
    }

    #[track_caller]
    fn check_no_secrets(&self, response: &Response) {
        let output = format!("{}{}", response.json, response.stderr);
        let secret = self.cloud["secret_access_key"].as_str().unwrap_or("?");
        assert!(!output.contains(secret), "a secret is in the output: {output}");
    }

    /// Returns the result of a call that must succeed.
    #[track_caller]
    fn ok(&self, method: &str, arguments: Value) -> Value {
        self.run(method, arguments).result().clone()
    }

    /// Returns the cloud ID of a new VM, and its networks, which version 1 does not return.
    #[track_caller]
    fn create_vm(&self, arguments: Value) -> (String, Value) {
        let result = self.ok("create_vm", arguments);
        let (cid, networks) = if self.version == 1 { (&result, &Value::Null) } else { (&result[0], &result[1]) };
        (cid.as_str().unwrap_or_else(|| panic!("{result} has no cloud ID")).to_owned(), networks.clone())
    }

    /// Returns the texts of all elements with this name in the answer to a request of the test itself.
    #[track_caller]
    fn listed(&self, operation: &str, parameters: &[(&str, &str)], name: &str) -> Vec<String> {
        let service = if operation.contains("Target") || operation.contains("LoadBalancer") {
            Service::Elb
        } else {
            Service::Ec2
        };
        let answer = self.client.call(service, operation, parameters);
        assert_eq!(answer.status, 200, "{operation}: {}", String::from_utf8_lossy(&answer.body));
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let start = format!("<{name}>");
        let parts = text.split(&start).skip(1).filter_map(|part| part.split_once('<'));
        parts.map(|(text, _)| text.to_owned()).collect()
    }

    /// Returns everything that a call can leave behind.
    fn contents(&self) -> BTreeSet<String> {
        let alive = [
            ("Filter.1.Name", "instance-state-name"),
            ("Filter.1.Value.1", "pending"),
            ("Filter.1.Value.2", "running"),
        ];
        let own = [("Owner.1", "self")];
        [
            self.listed("DescribeInstances", &alive, "instanceId"),
            self.listed("DescribeVolumes", &[], "volumeId"),
            self.listed("DescribeNetworkInterfaces", &[], "networkInterfaceId"),
            self.listed("DescribeSnapshots", &own, "snapshotId"),
            self.listed("DescribeImages", &own, "imageId"),
            self.listed("DescribeRouteTables", &[], "destinationCidrBlock"),
            self.listed("DescribeAddresses", &[], "associationId"),
            self.listed("DescribeLoadBalancers", &[], "InstanceId"),
        ]
        .concat()
        .into_iter()
        .collect()
    }

    /// Returns what the Agent of a VM finds in its user-data.
    #[track_caller]
    fn user_data(&self, vm: &str) -> Value {
        let asked = [("InstanceId", vm), ("Attribute", "userData")];
        let answer = self.client.call(Service::Ec2, "DescribeInstanceAttribute", &asked);
        let text = element(&answer, "value").unwrap_or_else(|| panic!("VM {vm} has no user-data"));
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text);
        serde_json::from_slice(&bytes.unwrap_or_default()).unwrap_or_else(|error| panic!("user-data: {error}"))
    }

    /// Returns the operations that the gateway saw, in their order.
    fn operations(&self) -> Vec<String> {
        let records = self.gateway.map(Gateway::records).unwrap_or_default();
        let names = records.iter().filter_map(|record| record.line().split(' ').next().map(str::to_owned));
        names.collect()
    }

    /// Writes the image file of a heavy stemcell, as a client unpacks it, and returns its path.
    fn image(&self) -> PathBuf {
        let path = self.job.path("image");
        // Zeros between two blocks that are not.
        let mut disk = vec![1; 512 << 10];
        disk.extend(vec![0; 1 << 20]);
        disk.extend(vec![2; 512 << 10]);
        job::write(&path, &archive::gzip(&archive::tar(&[("root.img", &disk)])));
        path
    }

    fn region(&self) -> String {
        self.cloud["region"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the light stemcell of the cloud's image.
    fn stemcell(&self) -> String {
        format!("{} light", self.cloud["image"].as_str().unwrap_or_default())
    }

    /// Returns a manual network with this address.
    fn manual(&self, ip: &str) -> Value {
        json!({"net": {
            "type": "manual", "ip": ip, "netmask": "255.255.255.0", "gateway": "10.0.0.1", "dns": ["10.0.0.2"],
            "default": ["dns", "gateway"], "cloud_properties": {"subnet": self.cloud["subnet"]},
        }})
    }

    /// Returns the cloud properties of a small VM.
    fn small(&self) -> Value {
        json!({
            "instance_type": self.cloud["instance_type"], "availability_zone": self.cloud["availability_zone"],
            "ephemeral_disk": {"size": 10240},
        })
    }

    /// Returns the arguments of `create_vm`.
    fn vm(&self, properties: Value, networks: Value) -> Value {
        json!(["agent-1", self.stemcell(), properties, networks, [], tests::cloud::env()])
    }
}

/// Returns an object with these keys set.
fn with(mut object: Value, more: Value) -> Value {
    more.as_object().into_iter().flatten().for_each(|(name, value)| object[name] = value.clone());
    object
}
