//! Route tables, and routes to instances.

use super::{Call, done};
use crate::aws::error::{Error, combination, invalid, missing};
use crate::aws::ip_range::IpRange;
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, describe as list_resources};
use crate::aws::parameters::{required, text};
use crate::aws::state::State;
use serde_json::{Value, json};

const LISTING: Listing = Listing {
    kind: Kind::RouteTable,
    ids: "RouteTableId",
    filters: &[
        ("association.main", "associationSet.main"),
        ("association.subnet-id", "associationSet.subnetId"),
        ("route-table-id", "routeTableId"),
        ("route.destination-cidr-block", "routeSet.destinationCidrBlock"),
        ("route.instance-id", "routeSet.instanceId"),
        ("vpc-id", "vpcId"),
    ],
    result: "routeTableSet",
};

pub(super) fn describe(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    list_resources(state, call, &LISTING, |_, item| item.view.clone())
}

pub(super) fn create(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    put(state, call, false)?;
    Ok(json!({"return": true}))
}

pub(super) fn replace(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    put(state, call, true)?;
    done()
}

pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    let table = state.find(Kind::RouteTable, call.account, required(given, "RouteTableId")?)?;
    let (key, destination) = destination(given)?;
    let mut routes = table.view["routeSet"].as_array().cloned().unwrap_or_default();
    match routes.iter().position(|route| route[key] == destination) {
        Some(known) if routes[known]["gatewayId"] == "local" => {
            return Err(invalid("destination", destination, "The local route cannot be deleted."));
        }
        Some(known) => drop(routes.remove(known)),
        None => {
            let message = format!("no route with destination-cidr-block {destination} in route table {}", table.id);
            return Err(Error::new("InvalidRoute.NotFound", message));
        }
    }
    state.resources.set(&table.id, "routeSet", json!(routes));
    done()
}

fn put(state: &mut State, call: &Call<'_>, replaces: bool) -> Result<(), Error> {
    let given = call.parameters;
    let table = state.find(Kind::RouteTable, call.account, required(given, "RouteTableId")?)?;
    let (key, destination) = destination(given)?;
    let mut routes = table.view["routeSet"].as_array().cloned().unwrap_or_default();
    let known = routes.iter().position(|route| route[key] == destination);
    let new = target(state, call, table.text("vpcId"))?;
    match (known, replaces) {
        (Some(known), _) if routes[known]["gatewayId"] == "local" => {
            return Err(invalid("destination", destination, "The local route cannot be changed."));
        }
        (Some(_), false) => {
            let message = format!("The route identified by {destination} already exists.");
            return Err(Error::new("RouteAlreadyExists", message));
        }
        (None, true) => {
            let message =
                format!("There is no route defined for '{destination}' in the route table. Use CreateRoute instead.");
            return Err(Error::new("InvalidParameterValue", message));
        }
        (Some(known), true) => drop(routes.remove(known)),
        (None, false) => {}
    }
    let mut route = json!({key: destination});
    for (name, value) in new {
        route[name] = value;
    }
    routes.push(route);
    state.resources.set(&table.id, "routeSet", json!(routes));
    Ok(())
}

/// Returns the element for the destination, and the destination.
fn destination(given: &Value) -> Result<(&'static str, &str), Error> {
    let (key, text) = match (text(given, "DestinationCidrBlock"), text(given, "DestinationIpv6CidrBlock")) {
        (Some(text), None) => ("destinationCidrBlock", text),
        (None, Some(text)) => ("destinationIpv6CidrBlock", text),
        (None, None) => return Err(missing("destinationCidrBlock")),
        (Some(_), Some(_)) => return Err(combination("A route has one destination.")),
    };
    let range = IpRange::parse(text).filter(|_| text.contains('/'));
    let fits = range.is_some_and(|range| range.is_v6() == (key == "destinationIpv6CidrBlock"));
    if fits { Ok((key, text)) } else { Err(invalid("destinationCidrBlock", text, "This is not a valid CIDR block.")) }
}

/// Returns the elements of a route to the instance or interface of the request.
fn target(state: &mut State, call: &Call<'_>, network: &str) -> Result<[(&'static str, Value); 5], Error> {
    let interface = match (text(call.parameters, "InstanceId"), text(call.parameters, "NetworkInterfaceId")) {
        (Some(instance), None) => {
            let instance = state.find(Kind::Instance, call.account, instance)?;
            if instance.view["instanceState"]["name"] == "terminated" {
                return Err(Kind::Instance.not_found(&instance.id));
            }
            let interfaces = super::instance_views::interfaces(state, &instance);
            match interfaces.as_slice() {
                [interface] => interface.clone(),
                _ => {
                    let message = format!("There are multiple interfaces attached to instance '{}'.", instance.id);
                    return Err(Error::new("InvalidInstanceID", message));
                }
            }
        }
        (None, Some(interface)) => state.find(Kind::NetworkInterface, call.account, interface)?,
        (None, None) => return Err(missing("instanceId")),
        (Some(_), Some(_)) => return Err(combination("A route has one target.")),
    };
    if interface.view["vpcId"] != network {
        let message = "The route table and the target belong to different networks.";
        return Err(Error::new("InvalidParameterValue", message));
    }
    Ok([
        ("instanceId", interface.view["attachment"]["instanceId"].clone()),
        ("instanceOwnerId", json!(call.account)),
        ("networkInterfaceId", json!(interface.id)),
        ("origin", json!("CreateRoute")),
        ("state", json!("active")),
    ])
}

/// Marks the routes to an interface as without target.
pub(super) fn lose_target(state: &mut State, account: &str, interface: &str) {
    for table in state.own(Kind::RouteTable, account) {
        let mut routes = table.view["routeSet"].clone();
        for route in routes.as_array_mut().into_iter().flatten() {
            if route["networkInterfaceId"] == interface {
                route["state"] = json!("blackhole");
            }
        }
        state.resources.set(&table.id, "routeSet", routes);
    }
}
