//! One cell of the fault matrix: a method is played once with a fault at one of
//! its requests, and whatever it answers, the cloud holds nothing that the
//! answer does not own.

use super::{Cpi, manual};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;
use tests::Response;
use tests::openstack::{Contents, Fault, Gateway, Hits, Rule};

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

    fn limits(self) -> Value {
        match self {
            // A request may take both of these together. Long enough for every other
            // request on a busy machine.
            Kind::Timeout | Kind::Term => json!({"connect_seconds": 3, "first_byte_seconds": 3}),
            Kind::Wall => json!({"wall_seconds": 15, "create_stemcell_wall_seconds": 15}),
            _ => json!({}),
        }
    }
}

/// A method in a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Play {
    CreateStemcell,
    CreateVm,
    /// An address of the cloud's choice, a volume to boot from, a server group.
    CreateVmOfVolume,
    DeleteVm,
    AttachDisk,
    DetachDisk,
    CreateDisk,
    DeleteDisk,
    SnapshotDisk,
    CreateNetwork,
}

impl Play {
    pub(super) const ALL: [Play; 10] = [
        Play::CreateStemcell,
        Play::CreateVm,
        Play::CreateVmOfVolume,
        Play::DeleteVm,
        Play::AttachDisk,
        Play::DetachDisk,
        Play::CreateDisk,
        Play::DeleteDisk,
        Play::SnapshotDisk,
        Play::CreateNetwork,
    ];

    fn method(self) -> &'static str {
        match self {
            Play::CreateStemcell => "create_stemcell",
            Play::CreateVm | Play::CreateVmOfVolume => "create_vm",
            Play::DeleteVm => "delete_vm",
            Play::AttachDisk => "attach_disk",
            Play::DetachDisk => "detach_disk",
            Play::CreateDisk => "create_disk",
            Play::DeleteDisk => "delete_disk",
            Play::SnapshotDisk => "snapshot_disk",
            Play::CreateNetwork => "create_network",
        }
    }

    /// Where there is what it needs from before.
    fn stage(self, scene: &Scene<'_>) -> Value {
        let cpi = &scene.cpi;
        let dynamic = json!({"net": {"type": "dynamic", "cloud_properties": {"net_id": cpi.cloud["network"]}}});
        match self {
            Play::CreateStemcell => json!([cpi.image(), {"name": "little", "disk_format": "raw"}]),
            Play::CreateVm => {
                let mut networks = manual(&cpi.cloud, "10.0.0.31");
                networks["vip"] = json!({"type": "vip", "ip": cpi.cloud["floating_ip"], "cloud_properties": {}});
                json!(["agent", scene.stemcell, {"instance_type": "m1.tiny"}, networks, [], {}])
            }
            Play::CreateVmOfVolume => {
                let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
                json!(["agent", scene.stemcell, properties, dynamic, [], {"bosh": {"group": "g"}}])
            }
            Play::DeleteVm => {
                let networks = manual(&cpi.cloud, "10.0.0.32");
                let properties = json!({"instance_type": "m1.tiny", "boot_from_volume": true});
                json!([cpi.create_vm(json!(["agent", scene.stemcell, properties, networks, [], {}])).0])
            }
            Play::AttachDisk => json!([scene.vm, scene.disk]),
            Play::DetachDisk => {
                cpi.ok("attach_disk", json!([scene.vm, scene.disk]));
                json!([scene.vm, scene.disk])
            }
            Play::CreateDisk => json!([1024, {}, scene.vm]),
            Play::DeleteDisk => json!([cpi.cid("create_disk", json!([1024, {}, null]))]),
            Play::SnapshotDisk => json!([scene.disk, {"deployment": "d"}]),
            Play::CreateNetwork => json!([{"type": "manual", "range": "10.8.0.0/24", "cloud_properties": {}}]),
        }
    }

    /// Takes away what the answer owns; of a delete that failed, all.
    fn clean(self, cpi: &Cpi<'_>, arguments: &Value, response: &Response) {
        let result = &response.json["result"];
        let made = response.json["error"].is_null();
        let (undo, cid) = match self {
            Play::CreateStemcell => ("delete_stemcell", json!([result])),
            Play::CreateVm | Play::CreateVmOfVolume => ("delete_vm", json!([result[0]])),
            Play::AttachDisk => ("detach_disk", arguments.clone()),
            Play::CreateDisk => ("delete_disk", json!([result])),
            Play::SnapshotDisk => ("delete_snapshot", json!([result])),
            Play::CreateNetwork => ("delete_network", json!([result[0]])),
            Play::DeleteVm | Play::DetachDisk | Play::DeleteDisk => {
                if !made {
                    let again = cpi.ask(self.method(), arguments.clone());
                    let gone = ["Bosh::Clouds::VMNotFound", "Bosh::Clouds::DiskNotFound"];
                    let fine = again.json["error"].is_null() || gone.contains(&again.error_type());
                    assert!(fine, "a second {self:?}: {}", again.json);
                }
                return;
            }
        };
        if made {
            cpi.ok(undo, cid);
        }
    }
}

/// A cloud with a stemcell, a VM and a disk.
pub(super) struct Scene<'g> {
    pub(super) cpi: Cpi<'g>,
    before: Contents,
    stemcell: String,
    vm: String,
    disk: String,
}

impl<'g> Scene<'g> {
    pub(super) fn new(gateway: &'g Gateway) -> Scene<'g> {
        let cpi = Cpi::new(gateway).set("enable_auto_anti_affinity", json!(true));
        let before = cpi.api.contents();
        let stemcell = cpi.stemcell();
        let vm = cpi.create_vm(super::small(&cpi, &stemcell, "10.0.0.30")).0;
        let disk = cpi.cid("create_disk", json!([1024, {}, null]));
        let mut scene = Scene { cpi, before, stemcell, vm, disk };
        // A group of this name is there from now on.
        scene.cell(Play::CreateVmOfVolume, None, Kind::Body);
        scene
    }

    pub(super) fn drop_all(self) {
        self.cpi.ok("delete_vm", json!([self.vm]));
        self.cpi.ok("delete_disk", json!([self.disk]));
        self.cpi.ok("delete_stemcell", json!([self.stemcell]));
        self.cpi.drop_groups(&self.before);
        assert_eq!(self.cpi.api.left_behind(&self.before), Vec::<String>::new());
    }

    /// The requests of a play without faults, ids left out.
    pub(super) fn requests(&mut self, play: Play) -> Vec<String> {
        let arguments = play.stage(self);
        self.cpi.gateway.forget();
        let response = self.cpi.ask(play.method(), arguments.clone());
        assert!(response.json["error"].is_null(), "{play:?}: {}", response.json);
        let lines = self.cpi.gateway.records().iter().map(|record| line(&record.method, &record.path)).collect();
        play.clean(&self.cpi, &arguments, &response);
        lines
    }

    /// Plays it with a fault at the requests of this rule; answers how it ended.
    pub(super) fn cell(&mut self, play: Play, rule: Option<Rule>, kind: Kind) -> String {
        let before = self.cpi.api.contents();
        let arguments = play.stage(self);
        let gateway = self.cpi.gateway;
        gateway.forget();
        let struck = rule.map(|rule| gateway.inject(rule, kind.fault()));
        let response = self.call(play, &arguments, kind, struck.as_ref());
        gateway.clear_faults();
        assert!(struck.is_none_or(|hits| hits.count() == 1), "{play:?} {kind:?}: no request was struck");
        self.cpi.keeps_secrets(&response);
        let deletes = matches!(play, Play::DeleteVm | Play::DetachDisk | Play::DeleteDisk);
        if !deletes && !response.json["error"].is_null() {
            let left = self.cpi.api.left_behind(&before);
            assert!(left.is_empty(), "{play:?} {kind:?} left {left:?}\n{}\n{}", response.json, response.stderr);
        }
        play.clean(&self.cpi, &arguments, &response);
        let left = self.cpi.api.left_behind(&before);
        let stays = left.iter().filter(|line| !line.starts_with("group ")).count();
        assert_eq!(stays, 0, "{play:?} {kind:?} left {left:?} in the end\n{}\n{}", response.json, response.stderr);
        ending(&response)
    }

    fn call(&self, play: Play, arguments: &Value, kind: Kind, struck: Option<&Hits>) -> Response {
        // Only the call itself has short limits; others here take their time.
        let config = self.cpi.job.path("config/struck.json");
        let text = std::fs::read(self.cpi.job.config_file()).unwrap_or_default();
        let mut settings: Value = serde_json::from_slice(&text).unwrap_or_default();
        settings["limits"] = kind.limits();
        tests::job::write(&config, settings.to_string().as_bytes());
        tests::job::set_mode(&config, 0o600);
        let call = self.cpi.call(play.method(), arguments.clone()).config(config).guard(Duration::from_secs(120));
        match (kind, struck) {
            (Kind::Term, Some(hits)) => {
                let hits = hits.clone();
                call.signal_when(move || hits.count() > 0, Signal::TERM).run()
            }
            _ => call.run(),
        }
    }
}

/// `ok`, or the type of the error, marked where the Director tries again.
fn ending(response: &Response) -> String {
    if response.json["error"].is_null() {
        return "ok".to_owned();
    }
    let retry = if response.json["error"]["ok_to_retry"] == true { "+" } else { "" };
    format!("{}{retry}", response.error_type().trim_start_matches("Bosh::Clouds::"))
}

/// A request whatever it is about.
pub(super) fn line(method: &str, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').map(|part| if part.len() > 30 { "*" } else { part }).collect();
    format!("{method} {}", parts.join("/"))
}
