//! Tests of the simulator, without sockets: a client signs requests, and the simulator
//! answers them.

mod disks;
mod host_names;
mod images;
mod instances;
mod interfaces;
mod metadata;
mod signatures;
mod snapshot_blocks;

use super::client::{Client, element};
use super::service::Service;
use super::simulator::Simulator;
use crate::gateway::{Backend as _, Request, Response};
use serde_json::Value;

/// A cloud and a client of its first account.
struct Cloud {
    simulator: Simulator,
    client: Client,
    description: Value,
}

impl Cloud {
    fn new() -> Cloud {
        let simulator = Simulator::new();
        let description = simulator.cloud();
        Cloud { client: Client::new(&description), simulator, description }
    }

    /// Returns a value of the cloud's description.
    fn value(&self, key: &str) -> String {
        self.description[key].as_str().unwrap_or_else(|| panic!("{key}: {}", self.description)).to_owned()
    }

    /// Returns a client of another account.
    fn other_client(&self) -> Client {
        let text = |key: &str| self.description["other_account"][key].as_str().unwrap_or_default().to_owned();
        let (access_key_id, secret_access_key) = (text("access_key_id"), text("secret_access_key"));
        Client { access_key_id, secret_access_key, ..self.client.clone() }
    }

    fn answer(&self, service: Service, request: &Request, mut body: &[u8]) -> Response {
        self.simulator.answer(service, request, &mut body).unwrap_or_else(|error| panic!("{error}"))
    }

    fn call_as(&self, client: &Client, service: Service, operation: &str, parameters: &[(&str, &str)]) -> Response {
        let (request, body) = client.form(service, operation, parameters);
        self.answer(service, &request, &body)
    }

    /// Calls an operation of EC2.
    fn call(&self, operation: &str, parameters: &[(&str, &str)]) -> Response {
        self.call_as(&self.client, Service::Ec2, operation, parameters)
    }

    /// Calls an operation of EC2 that must succeed, and returns an element of its response.
    #[track_caller]
    fn get(&self, operation: &str, parameters: &[(&str, &str)], name: &str) -> String {
        let response = self.call(operation, parameters);
        assert_eq!(response.status, 200, "{operation}: {}", text(&response));
        element(&response, name).unwrap_or_else(|| panic!("{operation}: no {name} in {}", text(&response)))
    }

    /// Calls an operation of EC2 that must succeed.
    #[track_caller]
    fn done(&self, operation: &str, parameters: &[(&str, &str)]) {
        let response = self.call(operation, parameters);
        assert_eq!(response.status, 200, "{operation}: {}", text(&response));
    }

    /// Calls an operation of EC2 that must fail with this code.
    #[track_caller]
    fn refused(&self, operation: &str, parameters: &[(&str, &str)], code: &str) {
        let response = self.call(operation, parameters);
        assert_eq!(element(&response, "Code").as_deref(), Some(code), "{operation}: {}", text(&response));
        assert!(response.status >= 400, "{operation}");
    }

    /// Returns the parameters of a launch.
    fn launch_parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ImageId", self.value("image")),
            ("InstanceType", "m5.large".to_owned()),
            ("MinCount", "1".to_owned()),
            ("MaxCount", "1".to_owned()),
            ("SubnetId", self.value("subnet")),
        ]
    }

    /// Starts an instance with these further parameters and returns its id.
    #[track_caller]
    fn launch(&self, further: &[(&str, &str)]) -> String {
        let own = self.launch_parameters();
        let mut all: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.extend(further);
        self.get("RunInstances", &all, "instanceId")
    }

    /// Starts an instance and waits until it runs.
    #[track_caller]
    fn running(&self) -> String {
        let id = self.launch(&[]);
        for _ in 0..2 {
            self.done("DescribeInstances", &[("InstanceId.1", &id)]);
        }
        id
    }

    /// Creates a volume and waits until it is available.
    #[track_caller]
    fn available_volume(&self, zone: &str) -> String {
        let id =
            self.get("CreateVolume", &[("AvailabilityZone", zone), ("Size", "10"), ("VolumeType", "gp3")], "volumeId");
        for _ in 0..2 {
            self.done("DescribeVolumes", &[("VolumeId.1", &id)]);
        }
        id
    }
}

fn text(response: &Response) -> String {
    format!("{} {}", response.status, String::from_utf8_lossy(&response.body))
}

/// Returns how often a text occurs in a response.
fn count(response: &Response, part: &str) -> usize {
    text(response).matches(part).count()
}
