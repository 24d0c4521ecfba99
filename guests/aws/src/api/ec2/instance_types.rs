//! Instance types.

use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, operation, text_or_empty, texts};
use crate::api::Query;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstanceType {
    pub(crate) name: String,
    pub(crate) is_current: bool,
    pub(crate) is_bare_metal: bool,
    pub(crate) architectures: Vec<String>,
    pub(crate) cpus: u64,
    pub(crate) memory_mib: u64,
    /// The sizes in GB of the disks of the host, one for each disk.
    pub(crate) disks_gb: Vec<u64>,
    /// True if EBS volumes are NVMe devices.
    pub(crate) has_nvme_volumes: bool,
    /// True if the disks of the host are NVMe devices.
    pub(crate) has_nvme_disks: bool,
}

impl InstanceType {
    fn read(item: &Element) -> Result<Self, XmlError> {
        let is_true = |path| Ok::<_, XmlError>(item.parsed(path)?.unwrap_or(false));
        let mut disks_gb = vec![];
        for disk in item.items("instanceStorageInfo/disks/item") {
            let count: usize = disk.parsed("count")?.unwrap_or(1);
            let size: u64 = disk.required_parsed("sizeInGB")?;
            // A wrong count of a server must not fill the memory.
            disks_gb.extend(std::iter::repeat_n(size, count.min(64)));
        }
        Ok(Self {
            name: item.required_text("instanceType")?.to_owned(),
            is_current: is_true("currentGeneration")?,
            is_bare_metal: is_true("bareMetal")?,
            architectures: texts(item, "processorInfo/supportedArchitectures/item"),
            cpus: item.parsed("vCpuInfo/defaultVCpus")?.unwrap_or(0),
            memory_mib: item.parsed("memoryInfo/sizeInMiB")?.unwrap_or(0),
            disks_gb,
            has_nvme_volumes: text_or_empty(item, "ebsInfo/nvmeSupport") == "required",
            has_nvme_disks: text_or_empty(item, "instanceStorageInfo/nvmeSupport") == "required",
        })
    }
}

fn read_all(answer: &Element) -> Result<Vec<InstanceType>, XmlError> {
    answer.items("instanceTypeSet/item").into_iter().map(InstanceType::read).collect()
}

impl Ec2 {
    pub(crate) fn instance_type(&self, name: &str) -> Query<Vec<InstanceType>> {
        self.repeatable(operation("DescribeInstanceTypes").set("InstanceType", [name]), read_all)
    }

    /// Returns all instance types of the region, in pages.
    pub(crate) fn instance_types(&self) -> Query<Vec<InstanceType>> {
        self.repeatable(operation("DescribeInstanceTypes").set("MaxResults", 100), read_all)
    }
}
