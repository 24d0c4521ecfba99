//! Network interfaces, and the Elastic IPs of them.

use serde_json::{Value, json};
use wasm_cpi_sdk::xml::{Element, XmlError};

use super::{Ec2, nothing, operation, text_or_empty, texts};
use crate::api::Query;

/// The error for an interface that was just created and is not known everywhere.
const UNKNOWN_YET: &[&str] = &["InvalidNetworkInterfaceID.NotFound"];

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) id: String,
    pub(crate) mac: String,
    pub(crate) private_ip: Option<String>,
    /// The delegated prefixes, as `ADDRESS/LENGTH`.
    pub(crate) prefixes: Vec<String>,
    pub(crate) attachment: Option<String>,
    pub(crate) device_index: Option<u32>,
}

pub(super) fn read(item: &Element) -> Result<Interface, XmlError> {
    let prefixes = ["ipv4PrefixSet/item/ipv4Prefix", "ipv6PrefixSet/item/ipv6Prefix"];
    Ok(Interface {
        id: item.required_text("networkInterfaceId")?.to_owned(),
        mac: text_or_empty(item, "macAddress"),
        private_ip: item.text("privateIpAddress").map(str::to_owned),
        prefixes: prefixes.into_iter().flat_map(|path| texts(item, path)).collect(),
        attachment: item.text("attachment/attachmentId").map(str::to_owned),
        device_index: item.parsed("attachment/deviceIndex")?,
    })
}

fn read_all(answer: &Element) -> Result<Vec<Interface>, XmlError> {
    answer.items("networkInterfaceSet/item").into_iter().map(read).collect()
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

    /// Delegates a prefix to an interface. The name of the operation depends on the version of IP.
    pub(crate) fn assign_prefix(&self, interface: &str, prefix: &str) -> Query<()> {
        let operation = if prefix.contains(':') {
            operation("AssignIpv6Addresses").set("Ipv6Prefix", [prefix])
        } else {
            operation("AssignPrivateIpAddresses").set("Ipv4Prefix", [prefix])
        };
        self.repeatable(operation.set("NetworkInterfaceId", interface), nothing)
            .passing(UNKNOWN_YET)
            .changes(format!("assigned prefix {prefix} to network interface {interface}"))
    }

    /// Returns an interface that was just created.
    pub(crate) fn interface(&self, id: &str) -> Query<Vec<Interface>> {
        self.repeatable(operation("DescribeNetworkInterfaces").set("NetworkInterfaceId", [id]), read_all)
            .passing(UNKNOWN_YET)
    }

    /// Returns the interfaces with this tag.
    pub(crate) fn interfaces_tagged(&self, key: &str, value: &str) -> Query<Vec<Interface>> {
        let operation = operation("DescribeNetworkInterfaces").filter(&format!("tag:{key}"), [value]);
        self.repeatable(operation, read_all)
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
