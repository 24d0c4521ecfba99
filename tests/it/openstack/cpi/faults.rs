//! One cell of the fault matrix: a method runs once with a fault at one of its requests.
//! Whatever the response is, nothing is left in the cloud except what the response names.

use super::scenarios::Scenario;
use super::{Cpi, GUARD};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::Response;
use tests::openstack::{Contents, Fault, Gateway, Hits, RecordedRequest, Rule, Step, Steps};

/// The wall clock limit, in seconds, of a call that has to reach it while it waits for a
/// response. The requests before that fit into it on a busy machine.
const WALL: u32 = 20;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Status(u16),
    TooMany,
    ResetBefore,
    ResetAfter,
    Body,
    /// The service executes the request, and the response never arrives.
    Timeout,
    /// The same, and the call reaches its wall clock limit meanwhile.
    Wall,
    /// The same, and the call gets SIGTERM meanwhile.
    Term,
}

impl Kind {
    pub(super) const ALL: [Kind; 10] = [
        Kind::Status(500),
        Kind::Status(503),
        Kind::Status(401),
        Kind::TooMany,
        Kind::ResetBefore,
        Kind::ResetAfter,
        Kind::Body,
        Kind::Timeout,
        Kind::Wall,
        Kind::Term,
    ];

    pub(super) fn name(self) -> String {
        match self {
            Kind::Status(status) => status.to_string(),
            Kind::TooMany => "429".to_owned(),
            Kind::ResetBefore => "reset".to_owned(),
            Kind::ResetAfter => "lost".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    fn fault(self) -> Fault {
        match self {
            Kind::Status(status) => Fault::status(status),
            Kind::TooMany => Fault::too_many(1),
            Kind::ResetBefore => Fault::ResetBefore,
            Kind::ResetAfter => Fault::ResetAfter,
            Kind::Body => Fault::Body(b"<html>".to_vec()),
            Kind::Timeout | Kind::Wall | Kind::Term => Fault::StallAfter,
        }
    }

    fn limits(self, response_timeout: u32) -> Value {
        match self {
            // A request may take the sum of both.
            Kind::Timeout | Kind::Term => {
                json!({"connect_seconds": response_timeout, "first_byte_seconds": response_timeout})
            }
            Kind::Wall => json!({"wall_seconds": WALL, "create_stemcell_wall_seconds": WALL}),
            _ => json!({}),
        }
    }
}

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
        let mut fixture = Fixture { cpi, before, settled: Contents::default(), stemcell, vm, disk, response_timeout };
        fixture.settle();
        fixture
    }

    /// Accepts the current resources as those of the fixture.
    pub(super) fn settle(&mut self) {
        self.cpi.gateway.clear_faults();
        self.settled = self.cpi.api.contents();
    }

    pub(super) fn tear_down(self) {
        self.cpi.ok("delete_vm", json!([self.vm]));
        self.cpi.ok("delete_disk", json!([self.disk]));
        self.cpi.ok("delete_stemcell", json!([self.stemcell]));
        self.cpi.delete_new_server_groups(&self.before);
        assert_eq!(self.cpi.api.left_behind(&self.before), Vec::<String>::new());
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
        sort_reads(&mut requests);
        scenario.clean_up(&self.cpi, &arguments, &response);
        if scenario == Scenario::CreateFirstVm {
            self.cpi.delete_new_server_groups(&self.settled);
        }
        requests
    }

    /// Runs a scenario with a fault at each of these requests and returns its outcome.
    pub(super) fn run_cell(&self, scenario: Scenario, steps: &[&Step], kind: Kind) -> String {
        let arguments = scenario.set_up(self);
        let (api, gateway) = (&self.cpi.api, self.cpi.gateway);
        // This scenario creates an unused port in advance, which the call does not have to delete.
        let prepared = (scenario == Scenario::CreateFirstVm).then(|| api.contents());
        gateway.clear_records();
        let injected: Vec<Hits> = steps.iter().map(|step| gateway.inject(Rule::step(step), kind.fault())).collect();
        let response = self.call(scenario, &arguments, kind, &injected);
        gateway.clear_faults();
        let context = format!("{scenario:?} {kind:?} at {steps:?}: {}\n{}", response.json, response.stderr);
        assert!(injected.iter().all(|hits| hits.count() == 1), "the fault was not injected: {context}");
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

    fn call(&self, scenario: Scenario, arguments: &Value, kind: Kind, injected: &[Hits]) -> Response {
        // Only this call has short limits. The calls that set up and clean up do not.
        let config = self.cpi.job.path("config/with-fault.json");
        let text = std::fs::read(self.cpi.job.config_file()).unwrap_or_default();
        let mut settings: Value = serde_json::from_slice(&text).unwrap_or_default();
        settings["limits"] = kind.limits(self.response_timeout);
        tests::job::write(&config, settings.to_string().as_bytes());
        tests::job::set_mode(&config, 0o600);
        let call = self.cpi.call(scenario.method(), arguments.clone()).config(config).guard(GUARD);
        match kind {
            Kind::Term => {
                let injected = injected.to_vec();
                call.signal_when(move || injected.iter().any(|hits| hits.count() > 0), Signal::TERM).run()
            }
            _ => call.run(),
        }
    }
}

/// Sorts the GETs between two changes. The guest sends some of them at once, so that their order
/// varies.
fn sort_reads(requests: &mut [Step]) {
    let is_read = |step: &Step| step.request.starts_with("GET ");
    for reads in requests.chunk_by_mut(|one, next| is_read(one) && is_read(next)) {
        reads.sort_by(|one, other| (&one.request, one.nth, one.poll).cmp(&(&other.request, other.nth, other.poll)));
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

/// Returns `ok` or the type of the error, with a `+` if the Director may try again.
fn outcome(response: &Response) -> String {
    if response.json["error"].is_null() {
        return "ok".to_owned();
    }
    let retry = if response.json["error"]["ok_to_retry"] == true { "+" } else { "" };
    format!("{}{retry}", response.error_type().trim_start_matches("Bosh::Clouds::"))
}
