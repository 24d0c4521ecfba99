//! Cinder: volumes and their types.

use super::message::{Answer, Response, fault, not_found};
use super::python::invalid_value;
use super::simulator::Call;
use super::state::{Effect, Session, State};
use super::table::{Item, matches_query, select_keys, unknown_key};
use super::{clock, compute_resources, seed, server_metadata, snapshots, versions, volume_actions};
use serde_json::{Value, json};

const QUOTAS: [&str; 4] = ["volumes", "per_volume_gigabytes", "snapshots", "gigabytes"];
const NOT_FILTERS: [&str; 7] = ["limit", "marker", "sort", "all_tenants", "sort_key", "sort_dir", "metadata"];
const OWNER: &str = "os-vol-tenant-attr:tenant_id";
const GIB: u64 = 1 << 30;

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    let version = versions::requested_volume_version(call.request)?;
    let answer = route(state, call, version);
    let with_version = |response: Response| {
        response.with("OpenStack-API-Version", &format!("volume 3.{version}")).with("Vary", "OpenStack-API-Version")
    };
    answer.map(with_version).map_err(with_version)
}

fn route(state: &mut State, call: &Call, version: u32) -> Answer {
    match call.route() {
        ("POST", ["volumes"]) => create(state, call),
        ("GET", ["volumes"]) => Ok(list(state, call, false)),
        ("GET", ["volumes", "detail"]) => Ok(list(state, call, true)),
        (_, ["volumes", id, ..]) => volume_actions::answer(state, call, version, id),
        (_, ["snapshots", ..]) => snapshots::answer(state, call, version),
        ("GET", ["types"]) => {
            let types: Vec<&Value> = state.volume_types.iter().map(|kind| &kind.view).collect();
            Ok(Response::json(200, &json!({"volume_types": types})))
        }
        ("GET", ["types", id]) => {
            let kind = state.volume_types.get(id);
            let kind = kind.ok_or_else(|| fault(404, &format!("Volume type {id} could not be found.")))?;
            Ok(Response::json(200, &json!({"volume_type": kind.view})))
        }
        ("GET", ["os-availability-zone"]) => {
            let zone = json!({"zoneName": seed::ZONE, "zoneState": {"available": true}});
            Ok(Response::json(200, &json!({"availabilityZoneInfo": [zone]})))
        }
        (_, ["os-quota-sets", project, ..]) => {
            let count = state.volumes.of(project).count() as u64;
            let used = [("volumes", count), ("gigabytes", gigabytes(state, project))];
            compute_resources::quota_sets(state, call, project, &QUOTAS, &used)
        }
        _ => Err(not_found(call.request)),
    }
}

/// Returns true if the path contains no project or the session's own.
pub(super) fn is_own(path: &str, session: &Session) -> bool {
    let second = path.split('/').nth(2).unwrap_or_default();
    second.len() != 32 || second == session.project
}

pub(super) fn missing(id: &str) -> Response {
    fault(404, &format!("Volume {id} could not be found."))
}

pub(super) fn find<'a>(state: &'a State, call: &Call, id: &str) -> Result<&'a Item, Response> {
    state.volumes.get(id).filter(|volume| call.session.sees(&volume.project)).ok_or_else(|| missing(id))
}

fn create(state: &mut State, call: &Call) -> Answer {
    let requested = &call.body["volume"];
    if let Some(key) = unknown_key(&call.body, &["volume", "OS-SCH-HNT:scheduler_hints"]) {
        let why = format!("Additional properties are not allowed ('{key}' was unexpected)");
        return Err(fault(400, &why));
    }
    if let Some(metadata) = requested.get("metadata").filter(|metadata| metadata.is_object()) {
        server_metadata::check_metadata_with(metadata, volume_actions::METADATA_KEY_CHARACTERS)?;
    }
    let size = requested["size"].as_u64().or_else(|| requested["size"].as_str()?.parse().ok());
    let wanted = requested["imageRef"].as_str().filter(|id| !id.is_empty());
    if let Some(id) = wanted {
        let image = super::image::find(state, &call.session, call.request, id);
        let image = image.map_err(|_| fault(400, "Invalid image identifier or unable to access requested image."))?;
        if image.text("status") != "active" {
            return Err(fault(400, &format!("Invalid input received: Image {id} is not active.")));
        }
        let (disk, least) = (image.number("size").div_ceil(GIB), image.number("min_disk"));
        if size.is_some_and(|size| size < disk) {
            let message = format!(
                "Invalid input received: Size of specified image {disk}GB is larger than volume size {}GB.",
                size.unwrap_or_default()
            );
            return Err(fault(400, &message));
        }
        if size.is_some_and(|size| size < least) {
            let message = format!(
                "Invalid input received: Volume size {}GB cannot be smaller than the image minDisk size {least}GB.",
                size.unwrap_or_default()
            );
            return Err(fault(400, &message));
        }
    }
    let size =
        size.or_else(|| state.snapshots.get(requested["snapshot_id"].as_str()?).map(|known| known.number("size")));
    let Some(size) = size.filter(|size| *size > 0) else {
        let given = &requested["size"];
        let message =
            "The server could not comply with the request since it is either malformed or otherwise incorrect.";
        return Err(if given.is_null() {
            fault(400, message)
        } else {
            invalid_value("size", given, "is less than the minimum of 1")
        });
    };
    let mut requested = requested.clone();
    requested["size"] = json!(size);
    let id = add(state, &call.session.project, &call.session.user, &requested)?;
    Ok(Response::json(202, &json!({"volume": view_without_owner(find(state, call, &id)?)})))
}

/// Adds a volume in the state `creating`.
pub(super) fn add(state: &mut State, project: &str, user: &str, requested: &Value) -> Result<String, Response> {
    if let Some(metadata) = requested.get("metadata").filter(|metadata| metadata.is_object()) {
        server_metadata::check_metadata_with(metadata, volume_actions::METADATA_KEY_CHARACTERS)?;
    }
    let size = requested["size"].as_u64().unwrap_or_default();
    let zone = requested["availability_zone"].as_str().unwrap_or(seed::ZONE);
    if zone != seed::ZONE {
        return Err(fault(400, &format!("Availability zone '{zone}' is invalid.")));
    }
    let kind = requested["volume_type"].as_str().filter(|kind| !kind.is_empty()).unwrap_or(seed::DEFAULT_TYPE);
    let known = state.volume_types.iter().find(|known| known.id == kind || known.text("name") == kind);
    let message = format!("Volume type with name {kind} could not be found.");
    let kind = known.ok_or_else(|| fault(404, &message))?.view["name"].clone();
    check_size(state, project, [size, size])?;
    if let Some(limit) =
        state.quota(project, "volumes").filter(|limit| state.volumes.of(project).count() as u64 >= *limit)
    {
        let message =
            format!("VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded for quota 'volumes'.");
        return Err(over_limit(&message));
    }
    let image = requested["imageRef"].as_str().filter(|id| !id.is_empty()).and_then(|id| state.images.get(id)).cloned();
    let id = state.uuid();
    let text = |key: &str| requested.get(key).cloned().unwrap_or_default();
    let mut view = json!({
        "id": id, "status": "creating", "size": size, "availability_zone": zone,
        "created_at": clock::now() + ".000000", "updated_at": null, "name": text("name"),
        "description": text("description"), "volume_type": kind, "snapshot_id": text("snapshot_id"),
        "source_volid": null, "metadata": requested.get("metadata").filter(|map| map.is_object()).unwrap_or(&json!({})),
        "links": links(project, "volumes", &id), "user_id": user, "bootable": "false", "encrypted": false,
        "replication_status": null, "consistencygroup_id": null, "multiattach": false, "attachments": [],
    });
    view[OWNER] = json!(project);
    if let Some(image) = image {
        view["volume_image_metadata"] = json!({
            "image_id": image.id, "image_name": image.view["name"], "disk_format": image.view["disk_format"],
            "container_format": image.view["container_format"], "size": image.view["size"].to_string(),
            "min_disk": image.view["min_disk"].to_string(), "min_ram": image.view["min_ram"].to_string(),
            "checksum": image.view["checksum"], "signature_verified": "False",
        });
    }
    state.volumes.add(Item::new(&id, project, view));
    state.schedule(&[&id], Effect::VolumeReady { volume: id.clone() });
    Ok(id)
}

/// Returns the view of a volume in answers to changes, which lacks the owner.
pub(super) fn view_without_owner(volume: &Item) -> Value {
    let mut view = volume.view.clone();
    if let Some(view) = view.as_object_mut() {
        view.shift_remove(OWNER);
    }
    view
}

pub(super) fn links(project: &str, kind: &str, id: &str) -> Value {
    json!([
        {"rel": "self", "href": format!("{}/v3/{project}/{kind}/{id}", seed::VOLUME)},
        {"rel": "bookmark", "href": format!("{}/{project}/{kind}/{id}", seed::VOLUME)},
    ])
}

fn list(state: &mut State, call: &Call, detail: bool) -> Response {
    let all = call.session.admin && call.request.query_value("all_tenants").is_some();
    let mine = |volume: &&Item| all || volume.project == call.session.project;
    let ids: Vec<String> = state.volumes.iter().filter(mine).map(|volume| volume.id.clone()).collect();
    state.count_read(ids.iter().map(String::as_str));
    let views = state.volumes.iter().filter(mine).map(|volume| &volume.view);
    let views = views
        .filter(|view| matches_query(call.request, view, &NOT_FILTERS))
        .filter(|view| matches_metadata(call, view));
    let mut views: Vec<Value> =
        views.map(|view| if detail { view.clone() } else { select_keys(view, &["id", "name", "links"]) }).collect();
    views.reverse();
    Response::json(200, &json!({"volumes": views}))
}

/// Returns true if a volume has all metadata of the query `metadata={"a": "b"}`.
fn matches_metadata(call: &Call, view: &Value) -> bool {
    let wanted = call.request.query_value("metadata").and_then(|text| serde_json::from_str::<Value>(text).ok());
    let pairs = wanted.as_ref().and_then(Value::as_object).into_iter().flatten();
    pairs.into_iter().all(|(key, value)| view["metadata"][key] == *value)
}

/// Returns the total size of a project's volumes and snapshots.
pub(super) fn gigabytes(state: &State, project: &str) -> u64 {
    state.volumes.of(project).chain(state.snapshots.of(project)).map(|item| item.number("size")).sum()
}

/// Rejects `more` gigabytes in total or `whole` gigabytes for one volume if they exceed
/// a quota.
pub(super) fn check_size(state: &State, project: &str, [more, whole]: [u64; 2]) -> Result<(), Response> {
    if let Some(limit) = state.quota(project, "per_volume_gigabytes").filter(|limit| whole > *limit) {
        let message = format!(
            "VolumeSizeExceedsLimit: Requested volume size {whole}G is larger than maximum allowed limit {limit}G."
        );
        return Err(over_limit(&message));
    }
    let used = gigabytes(state, project);
    let limit = state.quota(project, "gigabytes").filter(|limit| used + more > *limit);
    limit.map_or(Ok(()), |limit| {
        let message = format!("VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested {more}G, quota is {limit}G and {used}G has been consumed.");
        Err(over_limit(&message))
    })
}

/// Returns the error for an exceeded quota.
pub(super) fn over_limit(message: &str) -> Response {
    Response::json(413, &json!({"overLimit": {"code": 413, "message": message, "retryAfter": "0"}}))
        .with("Retry-After", "0")
}
