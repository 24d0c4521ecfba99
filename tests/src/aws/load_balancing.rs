//! Classic load balancers and target groups, which an operator creates.

use super::ec2::Call;
use super::error::Error;
use super::kind::Kind;
use super::parameters::{list, number, only, required, text, texts};
use super::service::Api;
use super::state::{Effect, State};
use crate::simulation::Item;
use serde_json::{Value, json};

/// Runs an operation of either API.
pub(super) fn answer(state: &mut State, api: Api, call: &Call<'_>) -> Result<Value, Error> {
    match (api, call.operation) {
        (Api::Elb, "RegisterInstancesWithLoadBalancer") => change_instances(state, call, true),
        (Api::Elb, "DeregisterInstancesFromLoadBalancer") => change_instances(state, call, false),
        (Api::Elb, "DescribeInstanceHealth") => instance_health(state, call),
        (Api::Elb, "DescribeLoadBalancers") => load_balancers(state, call),
        (Api::ElbV2, "DescribeTargetGroups") => target_groups(state, call),
        (Api::ElbV2, "RegisterTargets") => register(state, call),
        (Api::ElbV2, "DeregisterTargets") => deregister(state, call),
        (Api::ElbV2, "DescribeTargetHealth") => target_health(state, call),
        (_, other) => Err(Error::new("InvalidAction", format!("Could not find operation {other}"))),
    }
}

fn load_balancer(state: &State, account: &str, name: &str) -> Result<Item, Error> {
    let own = state.own(Kind::LoadBalancer, account).into_iter().find(|item| item.view["LoadBalancerName"] == name);
    own.ok_or_else(|| Error::new("LoadBalancerNotFound", format!("There is no ACTIVE Load Balancer named '{name}'")))
}

/// Checks the ids of instances.
fn check_instances(state: &mut State, account: &str, ids: &[&str]) -> Result<(), Error> {
    for id in ids {
        let instance = state.find(Kind::Instance, account, id);
        let alive = |item: &Item| item.view["instanceState"]["name"] != "terminated";
        if !instance.is_ok_and(|item| alive(&item)) {
            let message = format!("Could not find EC2 instance {id}.");
            return Err(Error::new("InvalidInstance", message));
        }
    }
    Ok(())
}

fn instance_ids(given: &Value) -> Vec<&str> {
    list(given, "Instances").iter().filter_map(|instance| text(instance, "InstanceId")).collect()
}

fn change_instances(state: &mut State, call: &Call<'_>, adds: bool) -> Result<Value, Error> {
    only(call.parameters, &["LoadBalancerName", "Instances"])?;
    let balancer = load_balancer(state, call.account, required(call.parameters, "LoadBalancerName")?)?;
    let ids = instance_ids(call.parameters);
    let mut known = balancer.view["Instances"].as_array().cloned().unwrap_or_default();
    if adds {
        check_instances(state, call.account, &ids)?;
    } else if let Some(id) = ids.iter().find(|id| !known.iter().any(|known| known["InstanceId"] == **id)) {
        return Err(Error::new("InvalidInstance", format!("{id} is not registered.")));
    }
    known.retain(|known| !ids.iter().any(|id| known["InstanceId"] == *id));
    if adds {
        known.extend(ids.iter().map(|id| json!({"InstanceId": id})));
    }
    state.resources.set(&balancer.id, "Instances", json!(known));
    Ok(json!({"Instances": known}))
}

fn instance_health(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let balancer = load_balancer(state, call.account, required(call.parameters, "LoadBalancerName")?)?;
    let wanted = instance_ids(call.parameters);
    let registered = list(&balancer.view, "Instances").iter().filter_map(|instance| text(instance, "InstanceId"));
    let shown: Vec<Value> = registered
        .filter(|id| wanted.is_empty() || wanted.contains(id))
        .map(|id| json!({"InstanceId": id, "State": "InService", "ReasonCode": "N/A", "Description": "N/A"}))
        .collect();
    Ok(json!({"InstanceStates": shown}))
}

fn load_balancers(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    only(call.parameters, &["LoadBalancerNames"])?;
    let names = texts(call.parameters, "LoadBalancerNames");
    for name in &names {
        load_balancer(state, call.account, name)?;
    }
    let own = state.own(Kind::LoadBalancer, call.account).into_iter().map(|item| item.view);
    let shown: Vec<Value> =
        own.filter(|view| names.is_empty() || names.iter().any(|name| view["LoadBalancerName"] == *name)).collect();
    Ok(json!({"LoadBalancerDescriptions": shown}))
}

fn target_groups(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    only(call.parameters, &["TargetGroupArns", "Names"])?;
    let (names, arns) = (texts(call.parameters, "Names"), texts(call.parameters, "TargetGroupArns"));
    let groups: Vec<Value> = state.own(Kind::TargetGroup, call.account).into_iter().map(|item| item.view).collect();
    let missing =
        |key: &str, wanted: &[&str]| wanted.iter().any(|wanted| !groups.iter().any(|group| group[key] == *wanted));
    if missing("TargetGroupName", &names) || missing("TargetGroupArn", &arns) {
        return Err(Error::new("TargetGroupNotFound", "One or more target groups not found"));
    }
    let wanted = |group: &Value| {
        (names.is_empty() && arns.is_empty())
            || names.iter().any(|name| group["TargetGroupName"] == *name)
            || arns.iter().any(|arn| group["TargetGroupArn"] == *arn)
    };
    Ok(json!({"TargetGroups": groups.iter().filter(|group| wanted(group)).collect::<Vec<_>>()}))
}

fn target_group(state: &State, call: &Call<'_>) -> Result<Item, Error> {
    let arn = required(call.parameters, "TargetGroupArn")?;
    let own = state.own(Kind::TargetGroup, call.account).into_iter().find(|item| item.view["TargetGroupArn"] == arn);
    own.ok_or_else(|| Error::new("TargetGroupNotFound", format!("Target groups '{arn}' not found")))
}

/// Returns the targets of the request, with the port of the group as default.
fn targets(group: &Item, given: &Value) -> Result<Vec<(String, i64)>, Error> {
    let read = list(given, "Targets").iter().map(|target| {
        only(target, &["Id", "Port"])?;
        let port = number(target, "Port").or_else(|| group.view["Port"].as_i64()).unwrap_or_default();
        if !(1..=65_535).contains(&port) {
            return Err(Error::new("ValidationError", format!("Port '{port}' is not a valid port")));
        }
        Ok((required(target, "Id")?.to_owned(), port))
    });
    read.collect()
}

fn register(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let group = target_group(state, call)?;
    let targets = targets(&group, call.parameters)?;
    for (id, _) in &targets {
        let instance = state.find(Kind::Instance, call.account, id);
        if !instance.is_ok_and(|item| item.view["instanceState"]["name"] == "running") {
            let message = format!("The following targets are not in a running state and cannot be registered: '{id}'");
            return Err(Error::new("InvalidTarget", message));
        }
    }
    let mut known = group.hidden["targets"].as_array().cloned().unwrap_or_default();
    known.retain(|known| !targets.iter().any(|(id, port)| known["id"] == *id && known["port"] == *port));
    if known.len() + targets.len() > state.limit("targets-per-group") {
        return Err(Error::new("TooManyTargets", "You've reached the limit on the number of targets."));
    }
    known.extend(targets.iter().map(|(id, port)| json!({"id": id, "port": port, "state": "initial"})));
    set_targets(state, &group.id, known);
    for (target, _) in targets {
        let group = group.id.clone();
        state.schedule(&[&group], Effect::TargetHealthy { group: group.clone(), target });
    }
    Ok(json!({}))
}

fn deregister(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let group = target_group(state, call)?;
    for (target, _) in targets(&group, call.parameters)? {
        set_health(state, &group.id, &target, "draining");
        let group = group.id.clone();
        state.schedule(&[&group], Effect::TargetDrained { group: group.clone(), target });
    }
    Ok(json!({}))
}

fn target_health(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    only(call.parameters, &["TargetGroupArn", "Targets"])?;
    let group = target_group(state, call)?;
    state.count_read(&[&group.id]);
    let group = target_group(state, call)?;
    let wanted = targets(&group, call.parameters)?;
    let known = group.hidden["targets"].as_array().into_iter().flatten();
    let shown: Vec<Value> = known
        .filter(|known| wanted.is_empty() || wanted.iter().any(|(id, _)| known["id"] == *id))
        .map(|known| json!({"Target": {"Id": known["id"], "Port": known["port"]}, "TargetHealth": {"State": known["state"]}}))
        .collect();
    Ok(json!({"TargetHealthDescriptions": shown}))
}

fn set_targets(state: &mut State, group: &str, targets: Vec<Value>) {
    if let Some(item) = state.resources.get_mut(group) {
        item.hidden["targets"] = json!(targets);
    }
}

pub(super) fn set_health(state: &mut State, group: &str, target: &str, health: &str) {
    if let Some(item) = state.resources.get_mut(group) {
        for known in item.hidden["targets"].as_array_mut().into_iter().flatten() {
            if known["id"] == target && known["state"] != "draining" {
                known["state"] = json!(health);
            }
        }
    }
}

/// Removes a target that is being drained.
pub(super) fn remove_target(state: &mut State, group: &str, target: &str) {
    if let Some(item) = state.resources.get_mut(group)
        && let Some(targets) = item.hidden["targets"].as_array_mut()
    {
        targets.retain(|known| known["id"] != target || known["state"] != "draining");
    }
}

/// Removes a terminated instance from all load balancers and target groups.
pub(super) fn forget_instance(state: &mut State, account: &str, instance: &str) {
    for balancer in state.own(Kind::LoadBalancer, account) {
        let mut known = balancer.view["Instances"].as_array().cloned().unwrap_or_default();
        known.retain(|known| known["InstanceId"] != instance);
        state.resources.set(&balancer.id, "Instances", json!(known));
    }
    for group in state.own(Kind::TargetGroup, account) {
        let mut targets = group.hidden["targets"].as_array().cloned().unwrap_or_default();
        targets.retain(|known| known["id"] != instance);
        set_targets(state, &group.id, targets);
    }
}
