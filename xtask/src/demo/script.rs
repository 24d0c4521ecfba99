//! The calls of the demo, in the form that a current Director sends.
//!
//! The demo negotiates the API version as the Director does: it sends `info` without
//! `api_version`, then the lower of the CPI's version and its own with every call. Only
//! calls about a VM contain the stemcell's version.

use super::response::Expect;
use serde_json::{Value, json};
use std::path::Path;

/// The newest API version of a Director.
const DIRECTOR_VERSION: u64 = 3;

/// Values from the cloud and from earlier responses, which later calls use.
pub(super) struct DemoState {
    pub(super) api_version: Option<u64>,
    image: String,
    network: Value,
    pub(super) stemcell: String,
    pub(super) vms: [String; 2],
    pub(super) disks: [String; 2],
    pub(super) snapshot: String,
}

impl DemoState {
    /// `cloud` is the content of `cloud.json`.
    pub(super) fn new(image: &Path, mut cloud: Value) -> DemoState {
        DemoState {
            api_version: None,
            image: image.to_string_lossy().into_owned(),
            network: cloud["network"].take(),
            stemcell: String::new(),
            vms: Default::default(),
            disks: Default::default(),
            snapshot: String::new(),
        }
    }

    /// Chooses the version for all later calls; `offered` is the CPI's own, from `info`.
    pub(super) fn negotiate(&mut self, offered: u64) {
        self.api_version = Some(offered.min(DIRECTOR_VERSION));
    }
}

pub(super) struct Call {
    pub(super) method: &'static str,
    /// The object of the call, for the printed line.
    pub(super) about: &'static str,
    arguments: fn(&DemoState) -> Value,
    pub(super) expect: Expect,
}

impl Call {
    const fn new(
        method: &'static str,
        about: &'static str,
        expect: Expect,
        arguments: fn(&DemoState) -> Value,
    ) -> Call {
        Call { method, about, arguments, expect }
    }

    /// Returns the request. The request ID ends with six digits, as the Director's does, and contains the call's number.
    pub(super) fn request(&self, number: usize, state: &DemoState) -> Value {
        let mut context = json!({
            "director_uuid": "2d4b8b1e-0a38-4b6c-9f5e-6a2f0c1d7e11",
            "request_id": format!("cpi-{}", 471_100 + number),
        });
        if matches!(self.method, "create_vm" | "delete_vm" | "attach_disk" | "detach_disk") {
            context["vm"] = json!({ "stemcell": { "api_version": 3 } });
        }
        let mut request = json!({ "method": self.method, "arguments": (self.arguments)(state), "context": context });
        if let Some(version) = state.api_version {
            request["api_version"] = version.into();
        }
        request
    }
}

/// The calls that create, use and change everything.
pub(super) const CREATION: [Call; 17] = [
    Call::new("info", "", Expect::Info, |_| json!([])),
    Call::new("create_stemcell", "ubuntu-noble", Expect::Stemcell, |state| {
        let properties = json!({ "name": "ubuntu-noble", "version": "1.1", "disk_format": "raw" });
        match state.api_version {
            Some(0..=2) | None => json!([state.image, properties]),
            Some(_) => json!([state.image, properties, { "tags": { "team": "demo" } }]),
        }
    }),
    Call::new("create_vm", "web/0", Expect::Vm(0), |state| create_vm(state, 0, "10.0.0.11")),
    Call::new("create_vm", "web/1", Expect::Vm(1), |state| create_vm(state, 1, "10.0.0.12")),
    Call::new(
        "set_vm_metadata",
        "web/0",
        Expect::Null,
        |state| json!([state.vms[0], { "deployment": "demo", "job": "web", "index": "0", "name": "web/0" }]),
    ),
    Call::new("create_disk", "of web/0", Expect::Disk(0), |state| json!([2048, {}, state.vms[0]])),
    Call::new("create_disk", "of web/1", Expect::Disk(1), |state| json!([2048, {}, state.vms[1]])),
    Call::new("attach_disk", "to web/0", Expect::Hint, |state| json!([state.vms[0], state.disks[0]])),
    Call::new("attach_disk", "to web/1", Expect::Hint, |state| json!([state.vms[1], state.disks[1]])),
    Call::new(
        "set_disk_metadata",
        "of web/0",
        Expect::Null,
        |state| json!([state.disks[0], { "deployment": "demo", "instance_group": "web" }]),
    ),
    Call::new(
        "snapshot_disk",
        "of web/0",
        Expect::Snapshot,
        |state| json!([state.disks[0], { "deployment": "demo", "job": "web", "index": "0" }]),
    ),
    Call::new("detach_disk", "from web/1", Expect::Null, |state| json!([state.vms[1], state.disks[1]])),
    Call::new("resize_disk", "of web/1", Expect::Null, |state| json!([state.disks[1], 4096])),
    Call::new("attach_disk", "to web/1", Expect::Hint, |state| json!([state.vms[1], state.disks[1]])),
    Call::new("reboot_vm", "web/0", Expect::Null, |state| json!([state.vms[0]])),
    Call::new("has_vm", "web/0", Expect::True, |state| json!([state.vms[0]])),
    Call::new("get_disks", "of web/1", Expect::DiskOf(1), |state| json!([state.vms[1]])),
];

/// The calls that delete everything again.
pub(super) const DELETION: [Call; 8] = [
    Call::new("delete_snapshot", "of web/0", Expect::Null, |state| json!([state.snapshot])),
    Call::new("detach_disk", "from web/0", Expect::Null, |state| json!([state.vms[0], state.disks[0]])),
    Call::new("detach_disk", "from web/1", Expect::Null, |state| json!([state.vms[1], state.disks[1]])),
    Call::new("delete_disk", "of web/0", Expect::Null, |state| json!([state.disks[0]])),
    Call::new("delete_disk", "of web/1", Expect::Null, |state| json!([state.disks[1]])),
    Call::new("delete_vm", "web/0", Expect::Null, |state| json!([state.vms[0]])),
    Call::new("delete_vm", "web/1", Expect::Null, |state| json!([state.vms[1]])),
    Call::new("delete_stemcell", "ubuntu-noble", Expect::Null, |state| json!([state.stemcell])),
];

fn create_vm(state: &DemoState, index: usize, ip: &str) -> Value {
    json!([
        format!("0c5f2ae1-6d1b-4c0f-8a3f-6f6b2a1e9d2{index}"),
        state.stemcell,
        { "instance_type": "m1.small" },
        { "default": {
            "type": "manual", "ip": ip, "prefix": "32", "netmask": "255.255.255.0",
            "gateway": "10.0.0.1", "dns": ["10.0.0.2"], "default": ["dns", "gateway"],
            "cloud_properties": { "net_id": state.network },
        } },
        [],
        { "bosh": { "group": "demo-web", "groups": ["demo", "web"], "tags": { "team": "demo" } } },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> DemoState {
        DemoState::new(Path::new("image"), json!({ "network": "net-1" }))
    }

    #[test]
    fn the_first_call_has_no_version_and_later_calls_have_the_lower_of_both() {
        let mut state = state();
        assert!(CREATION[0].request(1, &state).get("api_version").is_none());
        for (offered, spoken) in [(2, 2), (3, 3), (9, 3)] {
            state.negotiate(offered);
            assert_eq!(CREATION[2].request(1, &state)["api_version"], spoken);
        }
    }

    #[test]
    fn stemcells_have_tags_only_from_version_3_on() {
        let mut state = state();
        for (version, arguments) in [(2, 2), (3, 3)] {
            state.negotiate(version);
            assert_eq!(CREATION[1].request(1, &state)["arguments"].as_array().map(Vec::len), Some(arguments));
        }
    }

    #[test]
    fn vms_are_created_in_the_network_of_the_cloud() {
        let request = CREATION[2].request(1, &state());
        assert_eq!(request["arguments"][3]["default"]["cloud_properties"]["net_id"], "net-1");
        assert_eq!(request["context"]["vm"]["stemcell"]["api_version"], 3);
    }

    #[test]
    fn everything_that_is_created_is_deleted() {
        for (created, deleted) in [
            ("create_stemcell", "delete_stemcell"),
            ("create_vm", "delete_vm"),
            ("create_disk", "delete_disk"),
            ("snapshot_disk", "delete_snapshot"),
        ] {
            let count = |calls: &[Call], method: &str| calls.iter().filter(|call| call.method == method).count();
            assert_eq!(count(&CREATION, created), count(&DELETION, deleted), "{created}");
        }
    }
}
