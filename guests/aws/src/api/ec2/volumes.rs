//! Volumes of EBS, and their attachments.

use serde_json::Value;
use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, nothing, operation, tags, text_or_empty};
use crate::api::Query;
use crate::tags::Tags;

/// A volume as `DescribeVolumes` returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) id: String,
    /// `creating`, `available`, `in-use`, `deleting`, `deleted` or `error`.
    pub(crate) status: String,
    pub(crate) size_gib: u64,
    pub(crate) kind: String,
    pub(crate) iops: Option<u64>,
    pub(crate) throughput: Option<u64>,
    pub(crate) encrypted: bool,
    pub(crate) kms_key: Option<String>,
    pub(crate) zone: String,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) tags: Tags,
}

/// The attachment of a volume to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) instance: String,
    pub(crate) device: String,
    /// `attaching`, `attached`, `busy`, `detaching` or `detached`.
    pub(crate) status: String,
}

impl Volume {
    /// Returns the attachment to an instance, unless the volume is detached from it.
    pub(crate) fn attachment_to(&self, instance: &str) -> Option<&Attachment> {
        self.attachments.iter().find(|attachment| attachment.instance == instance && attachment.status != "detached")
    }

    /// Returns true if the volume does not exist any more, or soon.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(&*self.status, "deleting" | "deleted")
    }

    fn read(item: &Element) -> Result<Self, XmlError> {
        Ok(Self {
            id: item.required_text("volumeId")?.to_owned(),
            status: text_or_empty(item, "status"),
            size_gib: item.required_parsed("size")?,
            kind: text_or_empty(item, "volumeType"),
            iops: item.parsed("iops")?,
            throughput: item.parsed("throughput")?,
            encrypted: item.parsed("encrypted")?.unwrap_or(false),
            kms_key: item.text("kmsKeyId").map(str::to_owned),
            zone: text_or_empty(item, "availabilityZone"),
            attachments: item.items("attachmentSet/item").into_iter().map(Attachment::read).collect(),
            tags: tags::read(item),
        })
    }
}

impl Attachment {
    fn read(item: &Element) -> Self {
        let text = |name| text_or_empty(item, name);
        Self { instance: text("instanceId"), device: text("device"), status: text("status") }
    }
}

impl Ec2 {
    /// Returns a volume. The request fails if EC2 does not know it.
    pub(crate) fn volume(&self, id: &str) -> Query<Vec<Volume>> {
        self.repeatable(operation("DescribeVolumes").set("VolumeId", [id]), |answer| {
            answer.items("volumeSet/item").into_iter().map(Volume::read).collect()
        })
    }

    /// Creates a volume and returns its ID. The parameters have a `ClientToken`.
    pub(crate) fn create_volume(&self, parameters: &Value) -> Query<String> {
        self.repeatable(operation("CreateVolume").set_all(parameters), |answer| {
            answer.required_text("volumeId").map(str::to_owned)
        })
        .creates("created volume", Clone::clone)
    }

    pub(crate) fn delete_volume(&self, id: &str) -> Query<()> {
        self.once(operation("DeleteVolume").set("VolumeId", id), nothing).changes(format!("deleted volume {id}"))
    }

    pub(crate) fn attach_volume(&self, volume: &str, instance: &str, device: &str) -> Query<()> {
        let operation = operation("AttachVolume").set("VolumeId", volume).set("InstanceId", instance);
        self.once(operation.set("Device", device), nothing)
            .changes(format!("attached volume {volume} to instance {instance} as {device}"))
    }

    pub(crate) fn detach_volume(&self, volume: &str, instance: &str) -> Query<()> {
        self.once(operation("DetachVolume").set("VolumeId", volume).set("InstanceId", instance), nothing)
            .changes(format!("detached volume {volume} from instance {instance}"))
    }
}
