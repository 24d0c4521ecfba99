//! Network interfaces, and the Elastic IPs of them.

use serde_json::{Value, json};
use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, nothing, operation, text_or_empty, texts};
use crate::api::Query;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) id: String,
    pub(crate) mac: String,
    pub(crate) private_ip: Option<String>,
    pub(crate) ipv6: Vec<String>,
    /// The state of an interface on its own: `available` or `in-use`.
    pub(crate) status: String,
    pub(crate) attachment: Option<String>,
    pub(crate) device_index: Option<u32>,
}

pub(super) fn read(item: &Element) -> Result<Interface, XmlError> {
    Ok(Interface {
        id: item.required_text("networkInterfaceId")?.to_owned(),
        mac: text_or_empty(item, "macAddress"),
        private_ip: item.text("privateIpAddress").map(str::to_owned),
        ipv6: texts(item, "ipv6AddressesSet/item/ipv6Address"),
        status: text_or_empty(item, "status"),
        attachment: item.text("attachment/attachmentId").map(str::to_owned),
        device_index: item.parsed("attachment/deviceIndex")?,
    })
}

impl Ec2 {
    /// Creates an interface. The parameters have a `ClientToken`.
    pub(crate) fn create_interface(&self, parameters: &Value) -> Query<Interface> {
        self.repeatable(operation("CreateNetworkInterface").set_all(parameters), |answer| {
            read(answer.required("networkInterface")?)
        })
        .creates("created network interface", |interface| interface.id.clone())
    }

    pub(crate) fn delete_interface(&self, id: &str) -> Query<()> {
        self.repeatable(operation("DeleteNetworkInterface").set("NetworkInterfaceId", id), nothing)
            .changes(format!("deleted network interface {id}"))
    }

    /// Returns the interfaces with this tag.
    pub(crate) fn interfaces_tagged(&self, key: &str, value: &str) -> Query<Vec<Interface>> {
        let operation = operation("DescribeNetworkInterfaces").filter(&format!("tag:{key}"), [value]);
        self.repeatable(operation, |answer| answer.items("networkInterfaceSet/item").into_iter().map(read).collect())
    }

    pub(crate) fn set_source_dest_check(&self, interface: &str, value: bool) -> Query<()> {
        self.modify_interface(interface, "SourceDestCheck", &json!({"Value": value}))
    }

    /// Deletes the interface together with its instance, or keeps it then.
    pub(crate) fn set_delete_on_termination(&self, interface: &str, attachment: &str, value: bool) -> Query<()> {
        let attachment = json!({"AttachmentId": attachment, "DeleteOnTermination": value});
        self.modify_interface(interface, "Attachment", &attachment)
    }

    pub(crate) fn set_public_address(&self, interface: &str, value: bool) -> Query<()> {
        self.modify_interface(interface, "AssociatePublicIpAddress", &json!(value))
    }

    /// Sets one attribute: EC2 takes one in a request.
    fn modify_interface(&self, interface: &str, attribute: &str, value: &Value) -> Query<()> {
        let operation = operation("ModifyNetworkInterfaceAttribute").set("NetworkInterfaceId", interface);
        self.repeatable(operation.set(attribute, value), nothing)
            .passing(&["InvalidNetworkInterfaceID.NotFound", "InvalidAttachmentID.NotFound"])
            .changes(format!("set {attribute} of network interface {interface}"))
    }

    /// Associates an Elastic IP, also if it belongs to another instance.
    pub(crate) fn associate_address(&self, allocation: &str, interface: &str) -> Query<()> {
        let operation = operation("AssociateAddress")
            .set("AllocationId", allocation)
            .set("NetworkInterfaceId", interface)
            .set("AllowReassociation", true);
        self.repeatable(operation, nothing)
            .passing(&["IncorrectInstanceState", "InvalidInstanceID"])
            .changes(format!("associated Elastic IP {allocation} with network interface {interface}"))
    }
}
