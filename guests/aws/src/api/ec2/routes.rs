//! Route tables, and the routes to instances.

use wasm_cpi_sdk::query_api::Operation;
use wasm_cpi_sdk::xml::Element;

use super::{Ec2, nothing, operation};
use crate::api::Query;

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
}

impl Ec2 {
    /// Returns the route tables with these IDs that exist: with a list of IDs, the request fails if one does not.
    pub(crate) fn route_tables(&self, ids: &[&str]) -> Query<Vec<RouteTable>> {
        self.repeatable(operation("DescribeRouteTables").filter("route-table-id", ids), |answer| {
            let route = |item: &Element| {
                let text = |name| item.text(name).map(str::to_owned);
                let destination = text("destinationCidrBlock").or_else(|| text("destinationIpv6CidrBlock"));
                destination.map(|destination| Route { destination, instance: text("instanceId") })
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
}

/// Returns an operation on a route. The name of the destination depends on the version of IP.
fn route(action: &str, table: &str, destination: &str) -> Operation {
    let name = if destination.contains(':') { "DestinationIpv6CidrBlock" } else { "DestinationCidrBlock" };
    operation(action).set("RouteTableId", table).set(name, destination)
}
