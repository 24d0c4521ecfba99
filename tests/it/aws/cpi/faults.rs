//! One cell of the fault matrix: a method runs once with a fault at one of its requests. Whatever the response is,
//! nothing is left in the cloud except what the response names.

use super::Cpi;
use super::scenarios::Scenario;
use crate::fault_matrix::{self, Kind, call_with_fault, outcome, sort_runs};
use serde_json::json;
use std::collections::BTreeSet;
use tests::aws::{Gateway, Service, service_error, throttled};
use tests::gateway::{Fault, Services, Step, Steps};

pub(super) const KINDS: [Kind; 10] = Kind::all(["500", "503", "403", "throttled"]);

/// The timeout, in seconds, of a request whose response does not arrive.
const RESPONSE_TIMEOUT: u32 = 5;

/// The number of reads in which the changes of a call complete after its end.
const READS: usize = 4;

/// The changes that the guest sends at once.
const AT_ONCE: [&str; 7] = [
    "AssociateAddress",
    "DeregisterInstancesFromLoadBalancer",
    "DeregisterTargets",
    "ModifyNetworkInterfaceAttribute",
    "PutSnapshotBlock",
    "RegisterInstancesWithLoadBalancer",
    "RegisterTargets",
];

/// What the log of `delete_vm` says about something that still points to the VM.
const NOT_REMOVED: &str = "not all that points to it was removed";

/// A cloud with an instance and a volume.
pub(super) struct Fixture<'g> {
    pub(super) cpi: Cpi<'g>,
    gateway: &'g Gateway,
    /// What exists between two scenarios.
    settled: BTreeSet<String>,
    pub(super) vm: String,
    pub(super) disk: String,
}

impl<'g> Fixture<'g> {
    pub(super) fn new(gateway: &'g Gateway) -> Fixture<'g> {
        let cpi = Cpi::new(gateway);
        let text = |key: &str| cpi.cloud[key].as_str().unwrap_or_default();
        let (zone, subnet, image, kind) =
            (text("availability_zone"), text("subnet"), text("image"), text("instance_type"));
        let placed = [("ImageId", image), ("InstanceType", kind), ("SubnetId", subnet)];
        let launched = [&placed[..], &[("MinCount", "1"), ("MaxCount", "1")]].concat();
        let vm = cpi.listed("RunInstances", &launched, "instanceId").concat();
        let volume = [("AvailabilityZone", zone), ("Size", "1"), ("VolumeType", "gp3")];
        let disk = cpi.listed("CreateVolume", &volume, "volumeId").concat();
        let mut fixture = Fixture { cpi, gateway, settled: BTreeSet::new(), vm, disk };
        fixture.settled = fixture.contents();
        fixture
    }

    /// Runs a scenario without faults and returns its requests.
    pub(super) fn requests(&self, scenario: Scenario) -> Vec<Step> {
        let arguments = scenario.set_up(self);
        self.gateway.clear_records();
        let response = self.cpi.run(scenario.method(), arguments.clone());
        assert!(response.json["error"].is_null(), "{scenario:?}: {}", response.json);
        let mut steps = Steps::default();
        let mut requests = Vec::new();
        for record in self.gateway.records() {
            let operation = record.operation.unwrap_or_default();
            requests.push(steps.next_operation(&operation, &record.body, record.service.is_read(&operation)));
        }
        let are_reads = |one: &Step, next: &Step| [one, next].iter().all(|step| service(step).is_read(&step.request));
        let are_changes = |one: &Step, next: &Step| [one, next].iter().all(|step| AT_ONCE.contains(&&*step.request));
        sort_runs(&mut requests, |one, next| are_reads(one, next) || are_changes(one, next));
        scenario.clean_up(self, &arguments, &response);
        requests
    }

    /// Returns everything that a call can leave behind.
    fn contents(&self) -> BTreeSet<String> {
        let group = [("TargetGroupArn", self.cpi.cloud["target_group_arn"].as_str().unwrap_or_default())];
        let mut contents = self.cpi.contents();
        contents.extend(self.cpi.listed("DescribeTargetHealth", &group, "Id"));
        contents.extend(self.cpi.listed("DescribeVolumes", &[], "device"));
        contents
    }

    /// Returns what exists besides the fixture.
    fn left_behind(&self) -> Vec<String> {
        let mut left = Vec::new();
        for _ in 0..READS {
            let contents = self.contents();
            left = contents.symmetric_difference(&self.settled).cloned().collect();
            if left.is_empty() {
                break;
            }
        }
        left
    }

    /// Sets the limits of the next calls.
    fn limit(&self, limits: serde_json::Value) {
        self.cpi.job.write_config(&self.cpi.job.config_file(), limits);
    }
}

impl fault_matrix::Fixture for Fixture<'_> {
    type Scenario = Scenario;

    fn run_cell(&self, scenario: Scenario, steps: &[&Step], kind: Kind) -> String {
        self.limit(json!({}));
        let arguments = scenario.set_up(self);
        self.limit(kind.limits(RESPONSE_TIMEOUT));
        let call = self.cpi.call(scenario.method(), arguments.clone());
        let response = call_with_fault(self.gateway, steps, kind, |step, name| answer(service(step), name), call);
        self.limit(json!({}));
        let context = format!("{scenario:?} {kind:?} at {steps:?}: {}\n{}", response.json, response.stderr);
        self.cpi.check_no_secrets(&response);
        if !scenario.removes() && !response.json["error"].is_null() {
            assert_eq!(self.left_behind(), Vec::<String>::new(), "left by {context}");
        }
        scenario.clean_up(self, &arguments, &response);
        assert_eq!(self.left_behind(), Vec::<String>::new(), "left after cleaning up by {context}");
        outcome(&response) + if response.stderr.contains(NOT_REMOVED) { "!" } else { "" }
    }

    fn settle(&mut self) {
        self.gateway.clear_faults();
        self.settled = self.contents();
    }

    /// A simulator ends with this process, and each cell has found that nothing else is left.
    fn tear_down(self) {}
}

/// Returns the service of a request.
fn service(step: &Step) -> Service {
    match step.request.as_str() {
        "StartSnapshot" | "PutSnapshotBlock" | "CompleteSnapshot" => Service::Ebs,
        name if name.contains("Target") || name.contains("LoadBalancer") => Service::Elb,
        _ => Service::Ec2,
    }
}

/// Returns the fault that answers in place of a service.
fn answer(service: Service, name: &str) -> Fault {
    let refusal = match service {
        Service::Ec2 => "UnauthorizedOperation",
        Service::Ebs => "AccessDeniedException",
        _ => "AccessDenied",
    };
    match name {
        "500" => service_error(service, 500, "InternalError", "An internal error has occurred."),
        "403" => service_error(service, 403, refusal, "You are not authorized to perform this operation."),
        "throttled" => throttled(service),
        // As a proxy in front of the service answers.
        _ => Fault::status(503),
    }
}
