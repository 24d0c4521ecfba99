//! The calls of the demo, in the shapes that a Director of today sends.
//!
//! It negotiates first, as the Director does: `info` without `api_version`, then
//! the lower of the CPI's version and its own on every call. Only calls about a
//! VM carry the stemcell's version.

use super::answer::Expect;
use serde_json::{Value, json};
use std::path::Path;

/// The newest version that a Director speaks.
const DIRECTOR_VERSION: u64 = 3;

/// What the cloud and earlier responses told.
pub(super) struct Known {
    pub(super) api_version: Option<u64>,
    image: String,
    network: Value,
    pub(super) stemcell: String,
    pub(super) vms: [String; 2],
    pub(super) disks: [String; 2],
    pub(super) snapshot: String,
}

impl Known {
    /// `cloud` is what the cloud says about itself.
    pub(super) fn new(image: &Path, mut cloud: Value) -> Known {
        Known {
            api_version: None,
            image: image.to_string_lossy().into_owned(),
            network: cloud["network"].take(),
            stemcell: String::new(),
            vms: Default::default(),
            disks: Default::default(),
            snapshot: String::new(),
        }
    }

    /// Takes the CPI's own version, as `info` answered it.
    pub(super) fn negotiate(&mut self, offered: u64) {
        self.api_version = Some(offered.min(DIRECTOR_VERSION));
    }
}

pub(super) struct Call {
    pub(super) method: &'static str,
    /// What it is about, for the reader.
    pub(super) about: &'static str,
    arguments: fn(&Known) -> Value,
    pub(super) expect: Expect,
}

impl Call {
    const fn new(method: &'static str, about: &'static str, expect: Expect, arguments: fn(&Known) -> Value) -> Call {
        Call { method, about, arguments, expect }
    }

    /// The Director draws six digits for each call; `number` makes them tell which one it is.
    pub(super) fn request(&self, number: usize, known: &Known) -> Value {
        let mut context = json!({
            "director_uuid": "2d4b8b1e-0a38-4b6c-9f5e-6a2f0c1d7e11",
            "request_id": format!("cpi-{}", 471_100 + number),
        });
        if matches!(self.method, "create_vm" | "delete_vm" | "attach_disk" | "detach_disk") {
            context["vm"] = json!({ "stemcell": { "api_version": 3 } });
        }
        let mut request = json!({ "method": self.method, "arguments": (self.arguments)(known), "context": context });
        if let Some(version) = known.api_version {
            request["api_version"] = version.into();
        }
        request
    }
}

/// Everything is made, used and changed.
pub(super) const COMING: [Call; 17] = [
    Call::new("info", "", Expect::Info, |_| json!([])),
    Call::new("create_stemcell", "ubuntu-noble", Expect::Stemcell, |known| {
        let properties = json!({ "name": "ubuntu-noble", "version": "1.1", "disk_format": "raw" });
        match known.api_version {
            Some(0..=2) | None => json!([known.image, properties]),
            Some(_) => json!([known.image, properties, { "tags": { "team": "demo" } }]),
        }
    }),
    Call::new("create_vm", "web/0", Expect::Vm(0), |known| create_vm(known, 0, "10.0.0.11")),
    Call::new("create_vm", "web/1", Expect::Vm(1), |known| create_vm(known, 1, "10.0.0.12")),
    Call::new(
        "set_vm_metadata",
        "web/0",
        Expect::Null,
        |known| json!([known.vms[0], { "deployment": "demo", "job": "web", "index": "0", "name": "web/0" }]),
    ),
    Call::new("create_disk", "of web/0", Expect::Disk(0), |known| json!([2048, {}, known.vms[0]])),
    Call::new("create_disk", "of web/1", Expect::Disk(1), |known| json!([2048, {}, known.vms[1]])),
    Call::new("attach_disk", "to web/0", Expect::Hint, |known| json!([known.vms[0], known.disks[0]])),
    Call::new("attach_disk", "to web/1", Expect::Hint, |known| json!([known.vms[1], known.disks[1]])),
    Call::new(
        "set_disk_metadata",
        "of web/0",
        Expect::Null,
        |known| json!([known.disks[0], { "deployment": "demo", "instance_group": "web" }]),
    ),
    Call::new(
        "snapshot_disk",
        "of web/0",
        Expect::Snapshot,
        |known| json!([known.disks[0], { "deployment": "demo", "job": "web", "index": "0" }]),
    ),
    Call::new("detach_disk", "from web/1", Expect::Null, |known| json!([known.vms[1], known.disks[1]])),
    Call::new("resize_disk", "of web/1", Expect::Null, |known| json!([known.disks[1], 4096])),
    Call::new("attach_disk", "to web/1", Expect::Hint, |known| json!([known.vms[1], known.disks[1]])),
    Call::new("reboot_vm", "web/0", Expect::Null, |known| json!([known.vms[0]])),
    Call::new("has_vm", "web/0", Expect::True, |known| json!([known.vms[0]])),
    Call::new("get_disks", "of web/1", Expect::DiskOf(1), |known| json!([known.vms[1]])),
];

/// All of it is taken away again.
pub(super) const GOING: [Call; 8] = [
    Call::new("delete_snapshot", "of web/0", Expect::Null, |known| json!([known.snapshot])),
    Call::new("detach_disk", "from web/0", Expect::Null, |known| json!([known.vms[0], known.disks[0]])),
    Call::new("detach_disk", "from web/1", Expect::Null, |known| json!([known.vms[1], known.disks[1]])),
    Call::new("delete_disk", "of web/0", Expect::Null, |known| json!([known.disks[0]])),
    Call::new("delete_disk", "of web/1", Expect::Null, |known| json!([known.disks[1]])),
    Call::new("delete_vm", "web/0", Expect::Null, |known| json!([known.vms[0]])),
    Call::new("delete_vm", "web/1", Expect::Null, |known| json!([known.vms[1]])),
    Call::new("delete_stemcell", "ubuntu-noble", Expect::Null, |known| json!([known.stemcell])),
];

fn create_vm(known: &Known, index: usize, ip: &str) -> Value {
    json!([
        format!("0c5f2ae1-6d1b-4c0f-8a3f-6f6b2a1e9d2{index}"),
        known.stemcell,
        { "instance_type": "m1.small" },
        { "default": {
            "type": "manual", "ip": ip, "prefix": "32", "netmask": "255.255.255.0",
            "gateway": "10.0.0.1", "dns": ["10.0.0.2"], "default": ["dns", "gateway"],
            "cloud_properties": { "net_id": known.network },
        } },
        [],
        { "bosh": { "group": "demo-web", "groups": ["demo", "web"], "tags": { "team": "demo" } } },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        Known::new(Path::new("image"), json!({ "network": "net-1" }))
    }

    #[test]
    fn the_first_call_has_no_version_and_later_ones_the_lower_of_both() {
        let mut known = known();
        assert!(COMING[0].request(1, &known).get("api_version").is_none());
        for (offered, spoken) in [(2, 2), (3, 3), (9, 3)] {
            known.negotiate(offered);
            assert_eq!(COMING[2].request(1, &known)["api_version"], spoken);
        }
    }

    #[test]
    fn stemcells_get_tags_from_version_3_only() {
        let mut known = known();
        for (version, arguments) in [(2, 2), (3, 3)] {
            known.negotiate(version);
            assert_eq!(COMING[1].request(1, &known)["arguments"].as_array().map(Vec::len), Some(arguments));
        }
    }

    #[test]
    fn vms_are_made_in_the_clouds_network() {
        let request = COMING[2].request(1, &known());
        assert_eq!(request["arguments"][3]["default"]["cloud_properties"]["net_id"], "net-1");
        assert_eq!(request["context"]["vm"]["stemcell"]["api_version"], 3);
    }

    #[test]
    fn what_is_made_is_deleted() {
        for (made, deleted) in [
            ("create_stemcell", "delete_stemcell"),
            ("create_vm", "delete_vm"),
            ("create_disk", "delete_disk"),
            ("snapshot_disk", "delete_snapshot"),
        ] {
            let count = |calls: &[Call], method: &str| calls.iter().filter(|call| call.method == method).count();
            assert_eq!(count(&COMING, made), count(&GOING, deleted), "{made}");
        }
    }
}
