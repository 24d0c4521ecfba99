//! The end of instances.

use super::{Call, attachments, elastic_ips, instance_views, routes};
use crate::aws::error::Error;
use crate::aws::kind::Kind;
use crate::aws::load_balancing;
use crate::aws::parameters::texts;
use crate::aws::state::{Effect, State};
use crate::simulation::Item;
use serde_json::{Value, json};

pub(super) fn terminate(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let ids = texts(call.parameters, "InstanceId");
    let mut instances = Vec::new();
    for id in &ids {
        let instance = state.find(Kind::Instance, call.account, id)?;
        if instance.hidden["protected"] == true {
            let message = format!(
                "The instance '{id}' may not be terminated. Modify its 'disableApiTermination' instance attribute and \
                 try again."
            );
            return Err(Error::new("OperationNotPermitted", message));
        }
        instances.push(instance);
    }
    let changes: Vec<Value> = instances.iter().map(|instance| stop(state, instance)).collect();
    Ok(json!({"instancesSet": changes}))
}

/// Starts the end of an instance and returns the change of its state.
fn stop(state: &mut State, instance: &Item) -> Value {
    let previous = instance.view["instanceState"].clone();
    let mut current = previous.clone();
    if !["terminated", "shutting-down"].contains(&previous["name"].as_str().unwrap_or_default()) {
        current = json!({"code": 32, "name": "shutting-down"});
        state.pending.cancel(&instance.id);
        state.resources.set(&instance.id, "instanceState", current.clone());
        state.schedule(&[&instance.id], Effect::Terminated { instance: instance.id.clone() });
    }
    json!({"instanceId": instance.id, "currentState": current, "previousState": previous})
}

/// Ends a launch that was accepted, as EC2 does without capacity for its volumes.
pub(in crate::aws) fn fail_launch(state: &mut State, instance: &str) {
    finish(state, instance);
    let reason = json!({"code": "Server.InternalError", "message": "Server.InternalError: Internal error on launch"});
    state.resources.set(instance, "stateReason", reason);
}

/// Frees everything that a terminated instance used.
pub(in crate::aws) fn finish(state: &mut State, instance: &str) {
    let Some(item) = state.resources.get(instance).cloned() else { return };
    state.resources.set(instance, "instanceState", json!({"code": 48, "name": "terminated"}));
    for interface in instance_views::interfaces(state, &item) {
        elastic_ips::release_interface(state, &interface.id);
        routes::lose_target(state, &item.project, &interface.id);
        if interface.view["attachment"]["deleteOnTermination"] == true {
            state.resources.remove(&interface.id);
        } else if let Some(own) = state.resources.get_mut(&interface.id) {
            own.view.as_object_mut().map(|view| view.remove("attachment"));
            own.view["status"] = json!("available");
        }
    }
    for attachment in attachments::attachments_of(state, &item) {
        let volume = attachment["volumeId"].as_str().unwrap_or_default();
        state.pending.cancel(volume);
        if attachment["deleteOnTermination"] == true {
            state.resources.remove(volume);
        } else {
            attachments::finish_detach(state, volume);
        }
    }
    load_balancing::forget_instance(state, &item.project, instance);
}
