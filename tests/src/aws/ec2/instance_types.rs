//! Instance types.

use super::Call;
use crate::aws::error::{Error, invalid};
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, page};
use crate::aws::parameters::{list, texts};
use crate::aws::state::State;
use serde_json::{Value, json};

pub(in crate::aws) struct InstanceType {
    pub(in crate::aws) name: &'static str,
    cpus: i64,
    memory: i64,
    pub(super) architecture: &'static str,
    /// `required` on instances that have volumes as NVMe devices.
    nvme: &'static str,
    /// The number and the size in GB of disks of the instance's host.
    disks: (i64, i64),
    pub(super) interfaces: usize,
    pub(super) addresses: i64,
    /// A zone that does not have this type.
    pub(super) absent_in: Option<&'static str>,
}

const fn row(
    name: &'static str,
    size: (i64, i64),
    architecture: &'static str,
    nvme: &'static str,
    disks: (i64, i64),
    network: (usize, i64),
) -> InstanceType {
    let ((cpus, memory), (interfaces, addresses)) = (size, network);
    InstanceType { name, cpus, memory, architecture, nvme, disks, interfaces, addresses, absent_in: None }
}

pub(in crate::aws) const TYPES: [InstanceType; 9] = [
    row("t2.micro", (1, 1024), "x86_64", "unsupported", (0, 0), (2, 2)),
    row("t3.micro", (2, 1024), "x86_64", "required", (0, 0), (2, 2)),
    row("m4.large", (2, 8192), "x86_64", "unsupported", (0, 0), (2, 10)),
    row("m5.large", (2, 8192), "x86_64", "required", (0, 0), (3, 10)),
    row("m5d.large", (2, 8192), "x86_64", "required", (1, 75), (3, 10)),
    row("c3.large", (2, 3840), "x86_64", "unsupported", (2, 16), (3, 10)),
    row("i3en.xlarge", (4, 32_768), "x86_64", "required", (1, 2500), (4, 15)),
    row("m6g.large", (2, 8192), "arm64", "required", (0, 0), (3, 10)),
    InstanceType {
        absent_in: Some("us-east-1b"),
        ..row("m7i.large", (2, 8192), "x86_64", "required", (0, 0), (3, 10))
    },
];

const LISTING: Listing = Listing { kind: Kind::Instance, ids: "InstanceType", filters: &[], result: "instanceTypeSet" };

pub(super) fn find(name: &str) -> Result<&'static InstanceType, Error> {
    let found = TYPES.iter().find(|known| known.name == name);
    found.ok_or_else(|| Error::new("InvalidParameterValue", format!("Invalid value '{name}' for InstanceType.")))
}

/// Returns how many volumes an instance of this type can have.
pub(super) fn max_volumes(name: &str) -> usize {
    if TYPES.iter().any(|known| known.name == name && known.nvme == "required") { 27 } else { 39 }
}

pub(super) fn describe(_: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let wanted = texts(call.parameters, "InstanceType");
    let unknown: Vec<&str> = wanted.iter().copied().filter(|name| find(name).is_err()).collect();
    if !unknown.is_empty() {
        let message = format!("The following supplied instance types do not exist: [{}]", unknown.join(", "));
        return Err(Error::new("InvalidInstanceType", message));
    }
    let mut found: Vec<&InstanceType> =
        TYPES.iter().filter(|known| wanted.is_empty() || wanted.contains(&known.name)).collect();
    for filter in list(call.parameters, "Filter") {
        let values = texts(filter, "Value");
        match filter["Name"].as_str().unwrap_or_default() {
            "instance-type" => found.retain(|known| values.contains(&known.name)),
            "ebs-info.nvme-support" => found.retain(|known| values.contains(&known.nvme)),
            other => return Err(invalid("Filter", other, "The filter is invalid.")),
        }
    }
    page(call.parameters, &LISTING, found.into_iter().map(view).collect())
}

fn view(known: &InstanceType) -> Value {
    let (count, size) = known.disks;
    let is_nitro = known.nvme == "required";
    let mut view = json!({
        "instanceType": known.name, "currentGeneration": is_nitro, "bareMetal": false,
        "hypervisor": if is_nitro { "nitro" } else { "xen" },
        "supportedRootDeviceTypes": ["ebs"], "supportedVirtualizationTypes": ["hvm"],
        "processorInfo": {"supportedArchitectures": [known.architecture]},
        "vCpuInfo": {"defaultVCpus": known.cpus}, "memoryInfo": {"sizeInMiB": known.memory},
        "instanceStorageSupported": count > 0,
        "ebsInfo": {"nvmeSupport": known.nvme, "encryptionSupport": "supported"},
        "networkInfo": {
            "maximumNetworkInterfaces": known.interfaces, "ipv4AddressesPerInterface": known.addresses,
            "ipv6AddressesPerInterface": known.addresses, "ipv6Supported": true,
        },
    });
    if count > 0 {
        view["instanceStorageInfo"] = json!({
            "totalSizeInGB": count * size, "disks": [{"sizeInGB": size, "count": count, "type": "ssd"}],
            "nvmeSupport": known.nvme,
        });
    }
    view
}
