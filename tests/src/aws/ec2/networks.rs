//! Zones, subnets and security groups, which an operator creates before the first deployment.

use super::Call;
use crate::aws::error::Error;
use crate::aws::kind::Kind;
use crate::aws::listing::{Listing, describe, page, select};
use crate::aws::parameters::{list, texts};
use crate::aws::seed;
use crate::aws::state::State;
use serde_json::{Value, json};

const SUBNETS: Listing = Listing {
    kind: Kind::Subnet,
    ids: "SubnetId",
    filters: &[
        ("availability-zone", "availabilityZone"),
        ("cidr-block", "cidrBlock"),
        ("state", "state"),
        ("subnet-id", "subnetId"),
        ("vpc-id", "vpcId"),
    ],
    result: "subnetSet",
};

const SECURITY_GROUPS: Listing = Listing {
    kind: Kind::SecurityGroup,
    ids: "GroupId",
    filters: &[
        ("description", "groupDescription"),
        ("group-id", "groupId"),
        ("group-name", "groupName"),
        ("owner-id", "ownerId"),
        ("vpc-id", "vpcId"),
    ],
    result: "securityGroupInfo",
};

pub(super) fn subnets(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    describe(state, call, &SUBNETS, |_, item| item.view.clone())
}

pub(super) fn security_groups(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let mut found = select(state, call, &SECURITY_GROUPS, |_, item| item.view.clone())?;
    let names = texts(call.parameters, "GroupName");
    if let Some(name) = names.iter().find(|name| !found.iter().any(|group| group["groupName"] == **name)) {
        let message = format!("The security group '{name}' does not exist");
        return Err(Error::new("InvalidGroup.NotFound", message));
    }
    found.retain(|group| names.is_empty() || names.iter().any(|name| group["groupName"] == *name));
    page(call.parameters, &SECURITY_GROUPS, found)
}

pub(super) fn zones(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    let all = seed::zones(&state.region);
    let mut wanted = texts(given, "ZoneName");
    for filter in list(given, "Filter") {
        match filter["Name"].as_str().unwrap_or_default() {
            "zone-name" => wanted.extend(texts(filter, "Value")),
            "region-name" if texts(filter, "Value") == [state.region.as_str()] => {}
            "state" if texts(filter, "Value") == ["available"] => {}
            other => return Err(Error::new("InvalidParameterValue", format!("The filter '{other}' is invalid"))),
        }
    }
    if let Some(name) = texts(given, "ZoneName").iter().find(|name| !all.iter().any(|zone| zone == *name)) {
        return Err(Error::new("InvalidParameterValue", format!("Invalid availability zone: [{name}]")));
    }
    let ids = texts(given, "ZoneId");
    let mut shown = Vec::new();
    for (number, name) in (1..).zip(&all) {
        let id = format!("use1-az{number}");
        let by_name = wanted.is_empty() || wanted.contains(&name.as_str());
        if by_name && (ids.is_empty() || ids.contains(&id.as_str())) {
            shown.push(json!({
                "zoneName": name, "zoneId": id, "zoneState": "available", "regionName": state.region,
                "groupName": state.region, "networkBorderGroup": state.region, "zoneType": "availability-zone",
                "optInStatus": "opt-in-not-required", "messageSet": [],
            }));
        }
    }
    Ok(json!({"availabilityZoneInfo": shown}))
}
