//! Instances.

use serde_json::Value;
use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, Interface, interfaces, nothing, operation, tags, text_or_empty};
use crate::api::{Query, first};
use crate::tags::Tags;

/// An instance as `DescribeInstances` returns it.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) id: String,
    /// `pending`, `running`, `shutting-down`, `terminated`, `stopping` or `stopped`.
    pub(crate) state: String,
    /// The code and the message of the reason of the last change of the state.
    pub(crate) reason: Option<(String, String)>,
    pub(crate) kind: String,
    pub(crate) zone: String,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) volumes: Vec<AttachedVolume>,
    pub(crate) tags: Tags,
}

/// A volume of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachedVolume {
    pub(crate) device: String,
    pub(crate) volume: String,
    pub(crate) status: String,
}

impl Instance {
    pub(crate) fn is_gone(&self) -> bool {
        self.state == "terminated"
    }

    /// Returns true if the instance runs or can run again.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(&*self.state, "terminated" | "shutting-down")
    }

    fn read(item: &Element) -> Result<Self, XmlError> {
        let reason = item.text("stateReason/code").map(|code| {
            let message = text_or_empty(item, "stateReason/message");
            (code.to_owned(), message)
        });
        Ok(Self {
            id: item.required_text("instanceId")?.to_owned(),
            state: item.required_text("instanceState/name")?.to_owned(),
            reason,
            kind: text_or_empty(item, "instanceType"),
            zone: text_or_empty(item, "placement/availabilityZone"),
            interfaces: item
                .items("networkInterfaceSet/item")
                .into_iter()
                .map(interfaces::read)
                .collect::<Result<_, _>>()?,
            volumes: item
                .items("blockDeviceMapping/item")
                .into_iter()
                .map(AttachedVolume::read)
                .collect::<Result<_, _>>()?,
            tags: tags::read(item),
        })
    }
}

impl AttachedVolume {
    fn read(item: &Element) -> Result<Self, XmlError> {
        Ok(Self {
            device: item.required_text("deviceName")?.to_owned(),
            volume: item.required_text("ebs/volumeId")?.to_owned(),
            status: text_or_empty(item, "ebs/status"),
        })
    }
}

fn read_all(answer: &Element) -> Result<Vec<Instance>, XmlError> {
    answer.items("reservationSet/item/instancesSet/item").into_iter().map(Instance::read).collect()
}

impl Ec2 {
    /// Returns an instance. The request fails if EC2 does not know it.
    pub(crate) fn instance(&self, id: &str) -> Query<Vec<Instance>> {
        self.repeatable(operation("DescribeInstances").set("InstanceId", [id]), read_all)
    }

    /// Returns the instances that were launched with this token.
    pub(crate) fn instances_with_token(&self, token: &str) -> Query<Vec<Instance>> {
        self.repeatable(operation("DescribeInstances").filter("client-token", [token]), read_all)
    }

    /// Launches an instance and returns its ID. The parameters have a `ClientToken`. The host shows only the places
    /// of the response that the policy lists.
    pub(crate) fn run_instances(&self, parameters: &Value) -> Query<String> {
        let read = |answer: &Element| {
            first(answer, "instanceId").map_or_else(|| answer.required_text("instanceId").map(str::to_owned), Ok)
        };
        self.repeatable(operation("RunInstances").set_all(parameters), read).creates("launched instance", Clone::clone)
    }

    pub(crate) fn terminate_instance(&self, id: &str) -> Query<()> {
        self.repeatable(operation("TerminateInstances").set("InstanceId", [id]), nothing)
            .changes(format!("ended instance {id}"))
    }

    pub(crate) fn reboot_instance(&self, id: &str) -> Query<()> {
        self.repeatable(operation("RebootInstances").set("InstanceId", [id]), nothing)
            .changes(format!("rebooted instance {id}"))
    }
}
