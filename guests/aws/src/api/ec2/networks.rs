//! What an operator creates: subnets, security groups, route tables and Elastic IPs. And the routes to instances.

use wasm_cpi_sdk::query_api::Operation;
use wasm_cpi_sdk::xml::Element;

use super::{Ec2, nothing, operation, text_or_empty};
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

/// A route table, with the targets of its routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteTable {
    pub(crate) id: String,
    pub(crate) routes: Vec<Route>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) destination: String,
    pub(crate) instance: Option<String>,
    pub(crate) interface: Option<String>,
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

    pub(crate) fn route_tables(&self, ids: &[&str]) -> Query<Vec<RouteTable>> {
        self.repeatable(operation("DescribeRouteTables").set("RouteTableId", ids), |answer| {
            let route = |item: &Element| {
                let text = |name| item.text(name).map(str::to_owned);
                let destination = text("destinationCidrBlock").or_else(|| text("destinationIpv6CidrBlock"));
                let (instance, interface) = (text("instanceId"), text("networkInterfaceId"));
                destination.map(|destination| Route { destination, instance, interface })
            };
            let read = |item: &Element| {
                let routes = item.items("routeSet/item").into_iter().filter_map(route).collect();
                Ok(RouteTable { id: item.required_text("routeTableId")?.to_owned(), routes })
            };
            answer.items("routeTableSet/item").into_iter().map(read).collect()
        })
    }

    pub(crate) fn create_route(&self, table: &str, destination: &str, interface: &str) -> Query<()> {
        self.repeatable(route("CreateRoute", table, destination).set("NetworkInterfaceId", interface), nothing)
            .changes(format!("created route {destination} of {table} to network interface {interface}"))
    }

    pub(crate) fn replace_route(&self, table: &str, destination: &str, interface: &str) -> Query<()> {
        self.repeatable(route("ReplaceRoute", table, destination).set("NetworkInterfaceId", interface), nothing)
            .changes(format!("replaced route {destination} of {table} to network interface {interface}"))
    }

    pub(crate) fn delete_route(&self, table: &str, destination: &str) -> Query<()> {
        self.repeatable(route("DeleteRoute", table, destination), nothing)
            .changes(format!("deleted route {destination} of {table}"))
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

/// Returns an operation on a route. The name of the destination depends on the version of IP.
fn route(action: &str, table: &str, destination: &str) -> Operation {
    let name = if destination.contains(':') { "DestinationIpv6CidrBlock" } else { "DestinationCidrBlock" };
    operation(action).set("RouteTableId", table).set(name, destination)
}
