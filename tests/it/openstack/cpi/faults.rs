//! One cell of the fault matrix: a method runs once with a fault at one of its requests.
//! Whatever the response is, nothing is left in the cloud except what the response names.

use super::scenarios::Scenario;
use super::{Cpi, GUARD};
use crate::fault_matrix::{self, Kind, call_with_fault, outcome, sort_runs};
use serde_json::{Value, json};
use tests::Response;
use tests::openstack::{Contents, Fault, Gateway, RecordedRequest, Step, Steps};

pub(super) const KINDS: [Kind; 10] = Kind::all(["500", "503", "401", "429"]);

/// A tenant with a stemcell, a VM and a disk.
pub(super) struct Fixture<'g> {
    pub(super) cpi: Cpi<'g>,
    /// The resources that existed before the fixture.
    before: Contents,
    /// The resources that exist between two scenarios.
    settled: Contents,
    pub(super) stemcell: String,
    pub(super) vm: String,
    pub(super) disk: String,
    /// The timeout, in seconds, of a request whose response does not arrive. It is longer
    /// than any other request takes on a busy machine.
    response_timeout: u32,
}

impl<'g> Fixture<'g> {
    /// The address of the VM.
    pub(super) const ADDRESS: &'static str = "10.0.0.30";

    pub(super) fn new(gateway: &'g Gateway, response_timeout: u32) -> Fixture<'g> {
        // Polling a server is expensive for real services.
        let cpi = Cpi::new(gateway)
            .set("enable_auto_anti_affinity", json!(true))
            .set("wait_resource_poll_interval", json!(5))
            .with_login_in_each_call();
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let vm = cpi.create_vm(super::small_vm(&cpi, &stemcell, Fixture::ADDRESS)).0;
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let settled = cpi.api.contents();
        Fixture { cpi, before, settled, stemcell, vm, disk, response_timeout }
    }

    /// Runs a scenario without faults and returns its requests; GETs between two changes are sorted.
    pub(super) fn requests(&self, scenario: Scenario) -> Vec<Step> {
        let arguments = scenario.set_up(self);
        self.cpi.gateway.clear_records();
        let response = self.cpi.run(scenario.method(), arguments.clone());
        assert!(response.json["error"].is_null(), "{scenario:?}: {}", response.json);
        let mut steps = Steps::default();
        let next = |record: &RecordedRequest| steps.next(&record.method, &record.target, &record.path);
        let mut requests: Vec<Step> = self.cpi.gateway.records().iter().map(next).collect();
        let is_read = |step: &Step| step.request.starts_with("GET ");
        sort_runs(&mut requests, |one, next| is_read(one) && is_read(next));
        scenario.clean_up(&self.cpi, &arguments, &response);
        if scenario == Scenario::CreateFirstVm {
            self.cpi.delete_new_server_groups(&self.settled);
        }
        requests
    }

    fn call(&self, scenario: Scenario, arguments: &Value, steps: &[&Step], kind: Kind) -> Response {
        let config = self.cpi.job.path("config/with-fault.json");
        self.cpi.job.write_config(&config, kind.limits(self.response_timeout));
        tests::job::set_mode(&config, 0o600);
        let call = self.cpi.call(scenario.method(), arguments.clone()).config(config).guard(GUARD);
        call_with_fault(self.cpi.gateway, steps, kind, |_, name| answer(name), call)
    }
}

impl fault_matrix::Fixture for Fixture<'_> {
    type Scenario = Scenario;

    fn run_cell(&self, scenario: Scenario, steps: &[&Step], kind: Kind) -> String {
        let arguments = scenario.set_up(self);
        let api = &self.cpi.api;
        // This scenario creates an unused port in advance, which the call does not have to delete.
        let prepared = (scenario == Scenario::CreateFirstVm).then(|| api.contents());
        let response = self.call(scenario, &arguments, steps, kind);
        let context = format!("{scenario:?} {kind:?} at {steps:?}: {}\n{}", response.json, response.stderr);
        self.cpi.check_no_secrets(&response);
        let made_nothing = !scenario.removes() && !response.json["error"].is_null();
        if made_nothing {
            let left = without_server_group(api.left_behind(prepared.as_ref().unwrap_or(&self.settled)));
            assert!(left.is_empty(), "{left:?} is left by {context}");
        }
        scenario.clean_up(&self.cpi, &arguments, &response);
        if !made_nothing || prepared.is_some() {
            let left = without_server_group(api.left_behind(&self.settled));
            assert!(left.is_empty(), "{left:?} is left after cleaning up by {context}");
        }
        if prepared.is_some() {
            self.cpi.delete_new_server_groups(&self.settled);
        }
        outcome(&response)
    }

    fn settle(&mut self) {
        self.cpi.gateway.clear_faults();
        self.settled = self.cpi.api.contents();
    }

    fn tear_down(self) {
        self.cpi.ok("delete_vm", json!([self.vm]));
        self.cpi.ok("delete_disk", json!([self.disk]));
        self.cpi.ok("delete_stemcell", json!([self.stemcell]));
        self.cpi.delete_new_server_groups(&self.before);
        assert_eq!(self.cpi.api.left_behind(&self.before), Vec::<String>::new());
    }
}

/// Returns the fault that answers in place of a service.
fn answer(name: &str) -> Fault {
    match name.parse() {
        Ok(429) => Fault::too_many(1),
        Ok(status) => Fault::status(status),
        Err(_) => panic!("{name} is not a status"),
    }
}

/// Removes a single server group from the list. It belongs to the deployment, and the next
/// VM finds it by its name, so that one may stay, but not two.
fn without_server_group(mut left: Vec<String>) -> Vec<String> {
    if left.iter().filter(|line| line.starts_with("group ")).count() == 1 {
        left.retain(|line| !line.starts_with("group "));
    }
    left
}
