//! One cell of the fault matrix: a method is played once with a fault at one of
//! its requests, and whatever it answers, the cloud holds nothing that the
//! answer does not own.

use super::plays::Play;
use super::{Cpi, GUARD};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::Response;
use tests::openstack::{Contents, Fault, Gateway, Hits, Recorded, Rule, Step, Steps};

/// Of a call whose time is over while it waits for an answer, in seconds: enough
/// for all that it asks before on a busy machine.
const WALL: u32 = 20;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Status(u16),
    TooMany,
    ResetBefore,
    ResetAfter,
    Body,
    /// The service did it, and the answer never comes.
    Timeout,
    /// The same, and the call's time is over meanwhile.
    Wall,
    /// The same, and the call is told to stop.
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

    fn limits(self, patience: u32) -> Value {
        match self {
            // A request may take both of these together.
            Kind::Timeout | Kind::Term => json!({"connect_seconds": patience, "first_byte_seconds": patience}),
            Kind::Wall => json!({"wall_seconds": WALL, "create_stemcell_wall_seconds": WALL}),
            _ => json!({}),
        }
    }
}

/// A tenant with a stemcell, a VM and a disk.
pub(super) struct Scene<'g> {
    pub(super) cpi: Cpi<'g>,
    /// What was there before all this.
    before: Contents,
    /// What is there between the plays.
    settled: Contents,
    pub(super) stemcell: String,
    pub(super) vm: String,
    pub(super) disk: String,
    /// How long a request may take where answers do not come, in seconds: longer
    /// than any other request takes on a busy machine.
    patience: u32,
}

impl<'g> Scene<'g> {
    /// Of the VM.
    pub(super) const ADDRESS: &'static str = "10.0.0.30";

    pub(super) fn new(gateway: &'g Gateway, patience: u32) -> Scene<'g> {
        // Each look at a server is work for several real services.
        let cpi = Cpi::new(gateway)
            .set("enable_auto_anti_affinity", json!(true))
            .set("wait_resource_poll_interval", json!(5));
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let vm = cpi.create_vm(super::small(&cpi, &stemcell, Scene::ADDRESS)).0;
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let mut scene = Scene { cpi, before, settled: Contents::default(), stemcell, vm, disk, patience };
        scene.settle();
        scene
    }

    /// What is there now belongs here.
    pub(super) fn settle(&mut self) {
        self.cpi.gateway.clear_faults();
        self.settled = self.cpi.api.contents();
    }

    pub(super) fn drop_all(self) {
        self.cpi.ok("delete_vm", json!([self.vm]));
        self.cpi.ok("delete_disk", json!([self.disk]));
        self.cpi.ok("delete_stemcell", json!([self.stemcell]));
        self.cpi.drop_groups(&self.before);
        assert_eq!(self.cpi.api.left_behind(&self.before), Vec::<String>::new());
    }

    /// The requests of a play without faults.
    pub(super) fn requests(&self, play: Play) -> Vec<Step> {
        let arguments = play.stage(self);
        self.cpi.gateway.forget();
        let response = self.cpi.ask(play.method(), arguments.clone());
        assert!(response.json["error"].is_null(), "{play:?}: {}", response.json);
        let mut steps = Steps::default();
        let next = |record: &Recorded| steps.next(&record.method, &record.target, &record.path);
        let requests = self.cpi.gateway.records().iter().map(next).collect();
        play.clean(&self.cpi, &arguments, &response);
        if play == Play::CreateFirstVm {
            self.cpi.drop_groups(&self.settled);
        }
        requests
    }

    /// Plays it with a fault at each of these requests; answers how it ended.
    pub(super) fn cell(&self, play: Play, steps: &[&Step], kind: Kind) -> String {
        let arguments = play.stage(self);
        let (api, gateway) = (&self.cpi.api, self.cpi.gateway);
        // It comes to a place that is not tidy.
        let staged = (play == Play::CreateFirstVm).then(|| api.contents());
        gateway.forget();
        let struck: Vec<Hits> = steps.iter().map(|step| gateway.inject(Rule::step(step), kind.fault())).collect();
        let response = self.call(play, &arguments, kind, &struck);
        gateway.clear_faults();
        let told = format!("{play:?} {kind:?} at {steps:?}: {}\n{}", response.json, response.stderr);
        assert!(struck.iter().all(|hits| hits.count() == 1), "not struck: {told}");
        self.cpi.keeps_secrets(&response);
        let made_nothing = !play.deletes() && !response.json["error"].is_null();
        if made_nothing {
            let left = but_a_group(api.left_behind(staged.as_ref().unwrap_or(&self.settled)));
            assert!(left.is_empty(), "{left:?} is left by {told}");
        }
        play.clean(&self.cpi, &arguments, &response);
        if !made_nothing || staged.is_some() {
            let left = but_a_group(api.left_behind(&self.settled));
            assert!(left.is_empty(), "{left:?} is left in the end by {told}");
        }
        if staged.is_some() {
            self.cpi.drop_groups(&self.settled);
        }
        ending(&response)
    }

    fn call(&self, play: Play, arguments: &Value, kind: Kind, struck: &[Hits]) -> Response {
        // Only the call itself has short limits; others here take their time.
        let config = self.cpi.job.path("config/struck.json");
        let text = std::fs::read(self.cpi.job.config_file()).unwrap_or_default();
        let mut settings: Value = serde_json::from_slice(&text).unwrap_or_default();
        settings["limits"] = kind.limits(self.patience);
        tests::job::write(&config, settings.to_string().as_bytes());
        tests::job::set_mode(&config, 0o600);
        let call = self.cpi.call(play.method(), arguments.clone()).config(config).guard(GUARD);
        match kind {
            Kind::Term => {
                let struck = struck.to_vec();
                call.signal_when(move || struck.iter().any(|hits| hits.count() > 0), Signal::TERM).run()
            }
            _ => call.run(),
        }
    }
}

/// A server group belongs to the deployment, and the next VM finds it by its name:
/// it may stay, but there are no two of it.
fn but_a_group(mut left: Vec<String>) -> Vec<String> {
    if left.iter().filter(|line| line.starts_with("group ")).count() == 1 {
        left.retain(|line| !line.starts_with("group "));
    }
    left
}

/// `ok`, or the type of the error, marked where the Director tries again.
fn ending(response: &Response) -> String {
    if response.json["error"].is_null() {
        return "ok".to_owned();
    }
    let retry = if response.json["error"]["ok_to_retry"] == true { "+" } else { "" };
    format!("{}{retry}", response.error_type().trim_start_matches("Bosh::Clouds::"))
}
