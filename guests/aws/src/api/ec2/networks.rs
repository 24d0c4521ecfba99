//! What an operator creates: subnets, security groups and Elastic IPs.

use wasm_cpi_sdk::xml::Element;

use super::{Ec2, operation, text_or_empty};
use crate::api::Query;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) id: String,
    pub(crate) vpc: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecurityGroup {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) vpc: String,
}

/// An Elastic IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) ip: String,
    pub(crate) allocation: Option<String>,
}

impl Ec2 {
    pub(crate) fn subnets(&self, ids: &[&str]) -> Query<Vec<Subnet>> {
        self.repeatable(operation("DescribeSubnets").set("SubnetId", ids), |answer| {
            let read = |item: &Element| {
                let text = |name| item.required_text(name).map(str::to_owned);
                Ok(Subnet { id: text("subnetId")?, vpc: text("vpcId")? })
            };
            answer.items("subnetSet/item").into_iter().map(read).collect()
        })
    }

    /// Returns the security groups with these names in all VPCs.
    pub(crate) fn security_groups_named(&self, names: &[&str]) -> Query<Vec<SecurityGroup>> {
        self.repeatable(operation("DescribeSecurityGroups").filter("group-name", names), |answer| {
            let read = |item: &Element| {
                let text = |name| item.required_text(name).map(str::to_owned);
                Ok(SecurityGroup { id: text("groupId")?, name: text("groupName")?, vpc: text_or_empty(item, "vpcId") })
            };
            answer.items("securityGroupInfo/item").into_iter().map(read).collect()
        })
    }

    /// Returns the Elastic IP with this address. The request fails if the account does not have it.
    pub(crate) fn address(&self, ip: &str) -> Query<Vec<Address>> {
        self.repeatable(operation("DescribeAddresses").set("PublicIp", [ip]), |answer| {
            let read = |item: &Element| {
                let allocation = item.text("allocationId").map(str::to_owned);
                Ok(Address { ip: item.required_text("publicIp")?.to_owned(), allocation })
            };
            answer.items("addressesSet/item").into_iter().map(read).collect()
        })
    }
}
