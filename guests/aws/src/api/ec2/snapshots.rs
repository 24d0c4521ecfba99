//! Snapshots of volumes.

use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, nothing, operation, text_or_empty};
use crate::api::Query;
use crate::tags::Tags;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    /// `pending`, `completed` or `error`.
    pub(crate) status: String,
    pub(crate) message: String,
}

impl Snapshot {
    fn read(item: &Element) -> Result<Self, XmlError> {
        Ok(Self {
            id: item.required_text("snapshotId")?.to_owned(),
            status: text_or_empty(item, "status"),
            message: text_or_empty(item, "statusMessage"),
        })
    }
}

fn read_all(answer: &Element) -> Result<Vec<Snapshot>, XmlError> {
    answer.items("snapshotSet/item").into_iter().map(Snapshot::read).collect()
}

impl Ec2 {
    /// Returns a snapshot. The request fails if EC2 does not know it.
    pub(crate) fn snapshot(&self, id: &str) -> Query<Vec<Snapshot>> {
        self.repeatable(operation("DescribeSnapshots").set("SnapshotId", [id]), read_all)
    }

    /// Returns the snapshots of this account with a tag.
    pub(crate) fn snapshots_with_tag(&self, key: &str, value: &str) -> Query<Vec<Snapshot>> {
        let operation = operation("DescribeSnapshots").set("Owner", ["self"]);
        self.repeatable(operation.filter(&format!("tag:{key}"), [value]), read_all)
    }

    /// Takes a snapshot and returns its ID. EC2 has no token for this operation.
    pub(crate) fn create_snapshot(&self, volume: &str, description: &str, tags: &Tags) -> Query<String> {
        let operation = operation("CreateSnapshot").set("VolumeId", volume).set("Description", description);
        self.once(operation.set("TagSpecification", tags.specification(&["snapshot"])), |answer| {
            answer.required_text("snapshotId").map(str::to_owned)
        })
        .creates(format!("created a snapshot of volume {volume}:"), Clone::clone)
    }

    pub(crate) fn delete_snapshot(&self, id: &str) -> Query<()> {
        self.repeatable(operation("DeleteSnapshot").set("SnapshotId", id), nothing)
            .changes(format!("deleted snapshot {id}"))
    }
}
