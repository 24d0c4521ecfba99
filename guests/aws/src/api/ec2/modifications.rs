//! Changes of volumes in place.

use serde_json::{Map, Value};
use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, nothing, operation, text_or_empty};
use crate::api::Query;

/// The last modification of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Modification {
    /// `modifying`, `optimizing`, `completed` or `failed`. The volume can be used with its new properties while it is
    /// optimized.
    pub(crate) state: String,
    pub(crate) message: String,
    size_gib: Option<u64>,
    kind: String,
    iops: Option<u64>,
    throughput: Option<u64>,
}

impl Modification {
    /// Returns true if the modification is the one with these parameters of `ModifyVolume`.
    pub(crate) fn has(&self, parameters: &Map<String, Value>) -> bool {
        let is = |name: &str, number: Option<u64>| {
            parameters.get(name).is_none_or(|wanted| wanted.as_u64() == number && number.is_some())
        };
        is("Size", self.size_gib)
            && is("Iops", self.iops)
            && is("Throughput", self.throughput)
            && parameters.get("VolumeType").is_none_or(|wanted| *wanted == *self.kind)
    }

    fn read(item: &Element) -> Result<Self, XmlError> {
        Ok(Self {
            state: item.required_text("modificationState")?.to_owned(),
            message: text_or_empty(item, "statusMessage"),
            size_gib: item.parsed("targetSize")?,
            kind: text_or_empty(item, "targetVolumeType"),
            iops: item.parsed("targetIops")?,
            throughput: item.parsed("targetThroughput")?,
        })
    }
}

impl Ec2 {
    pub(crate) fn modify_volume(&self, volume: &str, parameters: &Map<String, Value>) -> Query<()> {
        self.once(operation("ModifyVolume").set("VolumeId", volume).set_all(parameters), nothing)
            .changes(format!("changed volume {volume}"))
    }

    /// Returns the last modification of a volume. The request fails if there is none.
    pub(crate) fn modification(&self, volume: &str) -> Query<Vec<Modification>> {
        self.repeatable(operation("DescribeVolumesModifications").set("VolumeId", [volume]), |answer| {
            answer.items("volumeModificationSet/item").into_iter().map(Modification::read).collect()
        })
    }
}
