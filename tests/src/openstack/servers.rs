//! Nova's existing servers: reads, updates, power actions and deletion.

use super::message::{Answer, Response, fault, not_found};
use super::simulator::Call;
use super::state::{Effect, Session, State};
use super::table::{Item, select_keys};
use super::{clock, python, server_build, server_groups, server_views};
use serde_json::{Value, json};

/// The microversion that rejects unknown query parameters of lists.
const STRICT: u32 = 75;
const FILTERS: [&str; 15] = [
    "name",
    "status",
    "image",
    "flavor",
    "tags",
    "limit",
    "marker",
    "sort_key",
    "sort_dir",
    "all_tenants",
    "ip",
    "project_id",
    "changes-since",
    "availability_zone",
    "deleted",
];

pub(super) fn answer(state: &mut State, call: &Call, version: u32, id: &str) -> Answer {
    match call.route() {
        ("GET", ["servers", _]) => {
            state.count_read([id]);
            let server = find(state, &call.session, id)?;
            Ok(Response::json(200, &json!({"server": server_views::server(state, server, version)})))
        }
        ("PUT", ["servers", _]) => rename(state, call, version, id),
        ("DELETE", ["servers", _]) => delete(state, call, id),
        ("POST", ["servers", _, "action"]) => run_action(state, call, id),
        _ => Err(not_found(call.request)),
    }
}

pub(super) fn missing(id: &str) -> Response {
    fault(404, &format!("Instance {id} could not be found."))
}

pub(super) fn find<'a>(state: &'a State, session: &Session, id: &str) -> Result<&'a Item, Response> {
    state.servers.get(id).filter(|server| session.sees(&server.project)).ok_or_else(|| missing(id))
}

pub(super) fn list(state: &mut State, call: &Call, version: u32, detail: bool) -> Answer {
    let unknown = call.request.query.iter().find(|(name, _)| !FILTERS.contains(&name.as_str()));
    if let Some((name, _)) = unknown.filter(|_| version >= STRICT) {
        return Err(fault(400, &format!("'{name}' does not match any of the regexes: '^_'")));
    }
    let tags: Vec<Value> =
        call.request.query_value("tags").into_iter().flat_map(|tags| tags.split(',')).map(Value::from).collect();
    let tagged =
        |server: &&Item| tags.iter().all(|tag| server.hidden["tags"].as_array().is_some_and(|all| all.contains(tag)));
    let mine = |server: &&Item| {
        let all = call.session.admin && call.request.query_value("all_tenants").is_some();
        all || server.project == call.session.project
    };
    let ids: Vec<String> = state.servers.iter().filter(mine).map(|server| server.id.clone()).collect();
    state.count_read(ids.iter().map(String::as_str));
    let wanted = |view: &Value| {
        let is = |name: &str, value: &str| {
            call.request.query_value(name).is_none_or(|requested| requested.eq_ignore_ascii_case(value))
        };
        let name = call
            .request
            .query_value("name")
            .is_none_or(|requested| name_matches(requested, view["name"].as_str().unwrap_or_default()));
        name && is("status", view["status"].as_str().unwrap_or_default())
            && is("image", view["image"]["id"].as_str().unwrap_or_default())
    };
    let views =
        state.servers.iter().filter(mine).filter(tagged).map(|server| server_views::server(state, server, version));
    let mut servers: Vec<Value> = views.filter(wanted).collect();
    servers.reverse();
    if !detail {
        servers = servers.iter().map(|view| select_keys(view, &["id", "name", "links"])).collect();
    }
    Ok(Response::json(200, &json!({"servers": servers})))
}

/// Matches a server's name against a pattern. Supports only anchors and escaped
/// characters.
fn name_matches(pattern: &str, name: &str) -> bool {
    let (start, end) = (pattern.starts_with('^'), pattern.ends_with('$'));
    let literal = pattern.trim_start_matches('^').trim_end_matches('$').replace('\\', "");
    match (start, end) {
        (true, true) => name == literal,
        (true, false) => name.starts_with(&literal),
        (false, true) => name.ends_with(&literal),
        (false, false) => name.contains(&literal),
    }
}

fn rename(state: &mut State, call: &Call, version: u32, id: &str) -> Answer {
    find(state, &call.session, id)?;
    if let Some(name) = call.body["server"]["name"].as_str() {
        state.servers.set(id, "name", json!(name));
    }
    let server = find(state, &call.session, id)?;
    Ok(Response::json(200, &json!({"server": server_views::server_after_update(state, server, version)})))
}

/// Deletes a server. Its record stays for some reads.
fn delete(state: &mut State, call: &Call, id: &str) -> Answer {
    let server = find(state, &call.session, id)?;
    // A server that was never on a host is removed immediately.
    if server.view["fault"]["message"].as_str().is_some_and(|why| why.starts_with(server_build::NO_HOST)) {
        state.servers.remove(id);
        server_groups::leave(state, id);
        return Ok(Response::new(204));
    }
    if state.soft_delete && server.text("OS-EXT-STS:vm_state") == "active" {
        state.cancel_pending(id);
        for (key, value) in [("status", "SOFT_DELETED"), ("OS-EXT-STS:vm_state", "soft-delete")] {
            state.servers.set(id, key, json!(value));
        }
        return Ok(Response::new(204));
    }
    start_delete(state, id);
    Ok(Response::new(204))
}

/// Starts the final deletion of a server.
fn start_delete(state: &mut State, id: &str) {
    let Some(server) = state.servers.get(id) else { return };
    let deleting = server.view["OS-EXT-STS:task_state"] == "deleting" || server.text("status") == "DELETED";
    if !deleting {
        state.cancel_pending(id);
        state.servers.set(id, "OS-EXT-STS:task_state", json!("deleting"));
        let ports = state.ports.iter().filter(|port| port.text("device_id") == id).map(|port| port.id.clone());
        let subjects: Vec<String> = ports.chain([id.to_owned()]).collect();
        let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
        state.schedule(&subjects, Effect::ServerDeleted { server: id.to_owned() });
    }
}

fn run_action(state: &mut State, call: &Call, id: &str) -> Answer {
    find(state, &call.session, id).map_err(|_| fault(404, &format!("Instance {id} has no mapping to a cell.")))?;
    let action = call.body.as_object().and_then(|body| body.keys().next()).map(String::as_str);
    if action == Some("forceDelete") {
        start_delete(state, id);
        return Ok(Response::new(202));
    }
    let (name, from, task, shown, then) = match action {
        Some("reboot") => match call.body["reboot"]["type"].as_str() {
            Some("SOFT") => ("reboot", &["active"][..], "rebooting", "REBOOT", "ACTIVE"),
            Some("HARD") => ("reboot", &["active", "stopped", "error"][..], "rebooting_hard", "HARD_REBOOT", "ACTIVE"),
            _ => return Err(python::missing_property("reboot", &call.body["reboot"], "type")),
        },
        Some("os-stop") => ("stop", &["active", "error"][..], "powering-off", "ACTIVE", "SHUTOFF"),
        Some("os-start") => ("start", &["stopped"][..], "powering-on", "SHUTOFF", "ACTIVE"),
        _ => return Err(fault(400, &format!("There is no such action: {}", action.unwrap_or_default()))),
    };
    check_state(state, id, name, from)?;
    state.servers.set(id, "OS-EXT-STS:task_state", json!(task));
    state.servers.set(id, "status", json!(shown));
    state.schedule(&[id], Effect::StatusChanged { server: id.to_owned(), status: then });
    Ok(Response::new(202))
}

/// Rejects an action unless the server is in one of these states and no other task is
/// in progress.
pub(super) fn check_state(state: &State, id: &str, action: &str, from: &[&str]) -> Result<(), Response> {
    let server = state.servers.get(id).ok_or_else(|| missing(id))?;
    let (vm, task) = (server.text("OS-EXT-STS:vm_state"), server.text("OS-EXT-STS:task_state"));
    let what = match (from.contains(&vm), task.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => format!("vm_state {vm}"),
        (true, false) => format!("task_state {task}"),
    };
    Err(fault(409, &format!("Cannot '{action}' instance {id} while it is in {what}")))
}

/// Sets the status after a build, reboot, start or stop.
pub(super) fn set_status(state: &mut State, id: &str, status: &str) {
    let (vm, power) = if status == "ACTIVE" { ("active", 1) } else { ("stopped", 4) };
    for (key, value) in [
        ("status", json!(status)),
        ("OS-EXT-STS:vm_state", json!(vm)),
        ("OS-EXT-STS:task_state", Value::Null),
        ("OS-EXT-STS:power_state", json!(power)),
        ("updated", json!(clock::now() + "Z")),
    ] {
        state.servers.set(id, key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::name_matches;

    #[test]
    fn names_are_found_by_pattern() {
        for (pattern, name, found) in [
            ("vm", "a-vm-1", true),
            ("^vm", "a-vm-1", false),
            ("^vm-1$", "vm-1", true),
            ("^vm-1$", "vm-12", false),
            ("^vm\\-1$", "vm-1", true),
        ] {
            assert_eq!(name_matches(pattern, name), found, "{pattern} {name}");
        }
    }
}
