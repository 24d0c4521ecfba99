//! Cinder's snapshots.

use super::message::{Answer, Response, fault, not_found};
use super::python::unexpected_property;
use super::simulator::Call;
use super::state::{Effect, State};
use super::table::{Item, matches_query, select_keys, unknown_key};
use super::volume::{check_size, over_limit};
use super::{clock, volume, volume_actions};
use serde_json::{Value, json};

/// The microversion from which volumes in use need no `force`.
const IN_USE: u32 = 66;
const NOT_FILTERS: [&str; 4] = ["limit", "marker", "sort", "all_tenants"];

pub(super) fn answer(state: &mut State, call: &Call, version: u32) -> Answer {
    match call.route() {
        ("POST", ["snapshots"]) => create(state, call, version),
        ("GET", ["snapshots"]) => Ok(list(state, call, false)),
        ("GET", ["snapshots", "detail"]) => Ok(list(state, call, true)),
        ("GET", ["snapshots", id]) => {
            state.count_read([*id]);
            Ok(Response::json(200, &json!({"snapshot": find(state, call, id)?.view})))
        }
        ("DELETE", ["snapshots", id]) => {
            let status = find(state, call, id)?.text("status").to_owned();
            if !["available", "error"].contains(&status.as_str()) {
                let message = "Invalid snapshot: Snapshot status must be available or error and snapshot must not belong to a group.";
                return Err(fault(400, message));
            }
            state.snapshots.set(id, "status", json!("deleting"));
            state.schedule(&[id], Effect::SnapshotDeleted { snapshot: (*id).to_owned() });
            Ok(Response::new(202))
        }
        (method, ["snapshots", id, "metadata"]) => {
            find(state, call, id)?;
            let snapshot = state.snapshots.get_mut(id).map(|snapshot| &mut snapshot.view["metadata"]);
            snapshot.map_or_else(
                || Err(not_found(call.request)),
                |metadata| volume_actions::update_metadata(call, method, metadata),
            )
        }
        _ => Err(not_found(call.request)),
    }
}

fn find<'a>(state: &'a State, call: &Call, id: &str) -> Result<&'a Item, Response> {
    let snapshot = state.snapshots.get(id).filter(|snapshot| call.session.sees(&snapshot.project));
    snapshot.ok_or_else(|| fault(404, &format!("Snapshot {id} could not be found.")))
}

fn create(state: &mut State, call: &Call, version: u32) -> Answer {
    let requested = &call.body["snapshot"];
    if let Some(key) =
        unknown_key(requested, &["name", "display_name", "description", "volume_id", "force", "metadata"])
    {
        return Err(unexpected_property("snapshot", requested, key));
    }
    let id = requested["volume_id"].as_str().unwrap_or_default().to_owned();
    let volume = volume::find(state, call, &id)?;
    let force = super::server_create::is_truthy(&requested["force"]);
    let allowed: &[&str] = if force || version >= IN_USE { &["available", "in-use"] } else { &["available"] };
    let (status, size, project) = (volume.text("status"), volume.number("size"), volume.project.clone());
    if !allowed.contains(&status) {
        let message = format!(
            "Invalid volume: Volume {id} status must be {}, but current status is: {status}.",
            allowed.join(", ")
        );
        return Err(fault(400, &message));
    }
    check_size(state, &project, [size, 0])?;
    if let Some(limit) =
        state.quota(&project, "snapshots").filter(|limit| state.snapshots.of(&project).count() as u64 >= *limit)
    {
        return Err(over_limit(&format!(
            "SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) exceeded"
        )));
    }
    let snapshot = state.uuid();
    let mut view = json!({
        "id": snapshot, "created_at": clock::now() + ".000000", "updated_at": null,
        "name": requested.get("name"), "description": requested.get("description"), "volume_id": id, "status": "creating",
        "size": size, "metadata": requested.get("metadata").filter(|map| map.is_object()).unwrap_or(&json!({})),
    });
    let answer = view.clone();
    view["os-extended-snapshot-attributes:progress"] = json!("0%");
    view["os-extended-snapshot-attributes:project_id"] = json!(project);
    state.snapshots.add(Item::new(&snapshot, &project, view));
    state.schedule(&[&snapshot], Effect::SnapshotReady { snapshot: snapshot.clone() });
    Ok(Response::json(202, &json!({"snapshot": answer})))
}

fn list(state: &mut State, call: &Call, detail: bool) -> Response {
    let all = call.session.admin && call.request.query_value("all_tenants").is_some();
    let mine = |snapshot: &&Item| all || snapshot.project == call.session.project;
    let ids: Vec<String> = state.snapshots.iter().filter(mine).map(|snapshot| snapshot.id.clone()).collect();
    state.count_read(ids.iter().map(String::as_str));
    let views = state.snapshots.iter().filter(mine).map(|snapshot| &snapshot.view);
    let views = views.filter(|view| matches_query(call.request, view, &NOT_FILTERS));
    let short = ["id", "created_at", "updated_at", "name", "description", "volume_id", "status", "size", "metadata"];
    let mut views: Vec<Value> =
        views.map(|view| if detail { view.clone() } else { select_keys(view, &short) }).collect();
    views.reverse();
    Response::json(200, &json!({"snapshots": views}))
}
