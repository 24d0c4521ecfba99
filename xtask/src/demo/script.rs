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

/// What earlier responses told.
pub(super) struct Known {
    pub(super) api_version: Option<u64>,
    pub(super) image: String,
    pub(super) stemcell: String,
    pub(super) vm: String,
    pub(super) disk: String,
}

impl Known {
    pub(super) fn new(image: &Path) -> Known {
        Known {
            api_version: None,
            image: image.to_string_lossy().into_owned(),
            stemcell: String::new(),
            vm: String::new(),
            disk: String::new(),
        }
    }

    /// Takes the CPI's own version, as `info` answered it.
    pub(super) fn negotiate(&mut self, offered: u64) {
        self.api_version = Some(offered.min(DIRECTOR_VERSION));
    }
}

pub(super) struct Call {
    pub(super) title: &'static str,
    method: &'static str,
    about_vm: bool,
    arguments: fn(&Known) -> Value,
    pub(super) expect: Expect,
}

impl Call {
    /// The Director draws six digits for each call; `number` makes them tell which one it is.
    pub(super) fn request(&self, number: usize, known: &Known) -> Value {
        let mut context = json!({
            "director_uuid": "2d4b8b1e-0a38-4b6c-9f5e-6a2f0c1d7e11",
            "request_id": format!("cpi-{}", 471_100 + number),
        });
        if self.about_vm {
            context["vm"] = json!({ "stemcell": { "api_version": 3 } });
        }
        let mut request = json!({ "method": self.method, "arguments": (self.arguments)(known), "context": context });
        if let Some(version) = known.api_version {
            request["api_version"] = version.into();
        }
        request
    }
}

pub(super) const CALLS: [Call; 15] = [
    Call {
        title: "the Director asks which version this CPI speaks",
        method: "info",
        about_vm: false,
        arguments: |_| json!([]),
        expect: Expect::Info,
    },
    Call {
        title: "a stemcell is uploaded",
        method: "create_stemcell",
        about_vm: false,
        arguments: |known| match known.api_version {
            Some(0..=2) | None => json!([known.image, { "name": "ubuntu-noble" }]),
            Some(_) => json!([known.image, { "name": "ubuntu-noble" }, { "tags": { "team": "demo" } }]),
        },
        expect: Expect::Stemcell,
    },
    Call {
        title: "a VM is created",
        method: "create_vm",
        about_vm: true,
        arguments: |known| {
            json!([
                "0c5f2ae1-6d1b-4c0f-8a3f-6f6b2a1e9d20",
                known.stemcell,
                { "instance_type": "small" },
                { "default": {
                    "type": "manual", "ip": "10.0.16.5", "prefix": "24", "netmask": "255.255.255.0",
                    "gateway": "10.0.16.1", "dns": ["10.0.16.2"], "default": ["dns", "gateway"],
                    "cloud_properties": { "name": "private" },
                } },
                [],
                { "bosh": { "group": "demo-web", "groups": ["demo", "web"], "tags": { "team": "demo" } } },
            ])
        },
        expect: Expect::Vm,
    },
    Call {
        title: "it is labelled",
        method: "set_vm_metadata",
        about_vm: false,
        arguments: |known| json!([known.vm, { "deployment": "demo", "job": "web", "index": "0", "name": "web/0" }]),
        expect: Expect::Null,
    },
    Call {
        title: "it exists",
        method: "has_vm",
        about_vm: false,
        arguments: |known| json!([known.vm]),
        expect: Expect::True,
    },
    Call {
        title: "a disk of 10 GiB is created",
        method: "create_disk",
        about_vm: false,
        arguments: |known| json!([10240, { "type": "fast" }, known.vm]),
        expect: Expect::Disk,
    },
    Call {
        title: "the disk is attached",
        method: "attach_disk",
        about_vm: true,
        arguments: |known| json!([known.vm, known.disk]),
        expect: Expect::Hint,
    },
    Call {
        title: "the disk is labelled",
        method: "set_disk_metadata",
        about_vm: false,
        arguments: |known| json!([known.disk, { "deployment": "demo", "instance_group": "web" }]),
        expect: Expect::Null,
    },
    Call {
        title: "the disk is detached",
        method: "detach_disk",
        about_vm: true,
        arguments: |known| json!([known.vm, known.disk]),
        expect: Expect::Null,
    },
    Call {
        title: "the disk is deleted",
        method: "delete_disk",
        about_vm: false,
        arguments: |known| json!([known.disk]),
        expect: Expect::Null,
    },
    Call {
        title: "the VM is deleted",
        method: "delete_vm",
        about_vm: true,
        arguments: |known| json!([known.vm]),
        expect: Expect::Null,
    },
    Call {
        title: "the stemcell is deleted",
        method: "delete_stemcell",
        about_vm: false,
        arguments: |known| json!([known.stemcell]),
        expect: Expect::Null,
    },
    Call {
        title: "a VM size is asked for in numbers",
        method: "calculate_vm_cloud_properties",
        about_vm: false,
        arguments: |_| json!([{ "ram": 4096, "cpu": 2, "ephemeral_disk_size": 20480 }]),
        expect: Expect::Map,
    },
    Call {
        title: "a method that no CPI has",
        method: "make_coffee",
        about_vm: false,
        arguments: |_| json!([]),
        expect: Expect::Error("Bosh::Clouds::NotImplemented"),
    },
    Call {
        title: "a method with too few arguments",
        method: "attach_disk",
        about_vm: true,
        arguments: |known| json!([known.vm]),
        expect: Expect::Error("Bosh::Clouds::CpiError"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_has_no_version_and_later_ones_the_lower_of_both() {
        let mut known = Known::new(Path::new("image"));
        assert!(CALLS[0].request(1, &known).get("api_version").is_none());
        for (offered, spoken) in [(2, 2), (3, 3), (9, 3)] {
            known.negotiate(offered);
            assert_eq!(CALLS[2].request(1, &known)["api_version"], spoken);
        }
    }

    #[test]
    fn stemcells_get_tags_from_version_3_only() {
        let mut known = Known::new(Path::new("image"));
        for (version, arguments) in [(2, 2), (3, 3)] {
            known.negotiate(version);
            assert_eq!(CALLS[1].request(1, &known)["arguments"].as_array().map(Vec::len), Some(arguments));
        }
    }

    #[test]
    fn only_calls_about_a_vm_tell_the_stemcells_version() {
        let known = Known::new(Path::new("image"));
        for call in &CALLS {
            let told = call.request(1, &known)["context"].get("vm").is_some();
            assert_eq!(told, matches!(call.method, "create_vm" | "delete_vm" | "attach_disk" | "detach_disk"));
        }
    }
}
