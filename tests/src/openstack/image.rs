//! Glance: images and their attributes. `image_data` handles their bytes.

use super::clock;
use super::message::{Answer, Request, Response, error_page, not_found};
use super::simulator::Call;
use super::state::{Session, State};
use super::table::{Item, matches_query};
use serde_json::{Value, json};

pub(super) use super::image_data::{is_upload, upload};

/// The attributes that clients cannot set.
const READ_ONLY: [&str; 13] = [
    "status",
    "checksum",
    "size",
    "virtual_size",
    "created_at",
    "updated_at",
    "self",
    "file",
    "schema",
    "direct_url",
    "locations",
    "os_hash_algo",
    "os_hash_value",
];
const NOT_FILTERS: [&str; 6] = ["limit", "marker", "sort_key", "sort_dir", "sort", "tag"];

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    match call.route() {
        ("POST", ["images"]) => create(state, call),
        ("GET", ["images"]) => Ok(list(state, call)),
        ("GET", ["images", id]) => Ok(Response::json(200, &find(state, &call.session, call.request, id)?.view)),
        ("PATCH", ["images", id]) => patch(state, call, id),
        ("DELETE", ["images", id]) => delete(state, call, id),
        ("PUT", ["images", id, "tags", tag]) => tag_with(state, call, id, tag, true),
        ("DELETE", ["images", id, "tags", tag]) => tag_with(state, call, id, tag, false),
        _ => Err(not_found(call.request)),
    }
}

pub(super) fn missing(request: &Request, id: &str) -> Response {
    let message = match request.method.as_str() {
        "DELETE" => format!("Failed to find image {id} to delete"),
        _ => format!("No image found with ID {id}"),
    };
    error_page(request, 404, "Not Found", &message)
}

/// Returns Glance's answer to a request without a valid token, which differs from the
/// other services' answer.
pub(super) fn unauthorized(request: &Request) -> Response {
    let message = "This server could not verify that you are authorized to access the document you requested. Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.";
    let realm = format!("Keystone uri=\"{}/v3\"", super::seed::IDENTITY);
    error_page(request, 401, "Unauthorized", message).with("WWW-Authenticate", &realm)
}

/// Returns the answer to a body with an unsupported media type.
pub(super) fn unsupported(request: &Request) -> Response {
    let kind = request.header("content-type").unwrap_or_default();
    let message = format!("The request media type {kind} is not supported by this server.");
    error_page(request, 415, "Unsupported Media Type", &message)
}

pub(super) fn find<'a>(state: &'a State, session: &Session, request: &Request, id: &str) -> Result<&'a Item, Response> {
    let shown =
        |image: &&Item| session.sees(&image.project) || ["public", "community"].contains(&image.text("visibility"));
    state.images.get(id).filter(shown).ok_or_else(|| missing(request, id))
}

/// Returns an image that this project may change.
fn find_own<'a>(state: &'a mut State, call: &Call, id: &str, action: &str) -> Result<&'a mut Item, Response> {
    let session = &call.session;
    find(state, session, call.request, id)?;
    let message = format!("You are not authorized to complete {action} action.");
    let image = state.images.get_mut(id).filter(|image| session.sees(&image.project));
    image.ok_or_else(|| error_page(call.request, 403, "Forbidden", &message))
}

fn create(state: &mut State, call: &Call) -> Answer {
    let requested = call.body.as_object().ok_or_else(|| bad_request(call.request, "Body expected in request."))?;
    if let Some(key) = requested.keys().find(|key| READ_ONLY.contains(&key.as_str())) {
        return Err(error_page(call.request, 403, "Forbidden", &format!("Attribute '{key}' is read-only.")));
    }
    let visibility = requested.get("visibility").and_then(Value::as_str).unwrap_or("shared");
    if !["public", "private", "shared", "community"].contains(&visibility) {
        let message = format!(
            "Provided object does not match schema 'image': '{visibility}' is not one of ['community', 'public', 'private', 'shared']  Failed validating 'enum' in schema['properties']['visibility']"
        );
        return Err(bad_request(call.request, &message));
    }
    may_publish(call, visibility)?;
    let text = |(key, value): &(&String, &Value)| {
        !["min_disk", "min_ram", "protected", "os_hidden", "tags"].contains(&key.as_str())
            && !value.is_string()
            && !value.is_null()
    };
    if let Some((key, value)) = requested.iter().find(text) {
        let message = format!(
            "Provided object does not match schema 'image': {value} is not of type 'string'  Failed validating 'type' in schema['additionalProperties']:     {{'type': 'string'}}  On instance['{key}']:     {value}"
        );
        return Err(bad_request(call.request, &message));
    }
    let id = requested.get("id").and_then(Value::as_str).map_or_else(|| state.uuid(), str::to_owned);
    if state.images.get(&id).is_some() {
        return Err(error_page(call.request, 409, "Conflict", &format!("Image ID {id} already exists!")));
    }
    let now = clock::now() + "Z";
    let mut view = json!({
        "name": null, "disk_format": null, "container_format": null, "visibility": "shared", "size": null,
        "virtual_size": null, "status": "queued", "checksum": null, "protected": false, "min_ram": 0, "min_disk": 0,
        "owner": call.session.project, "os_hidden": false, "os_hash_algo": null, "os_hash_value": null, "id": id,
        "created_at": now, "updated_at": now, "tags": [], "self": format!("/v2/images/{id}"),
        "file": format!("/v2/images/{id}/file"), "schema": "/v2/schemas/image",
    });
    if let Some(view) = view.as_object_mut() {
        view.extend(requested.clone());
    }
    state.images.add(Item::new(&id, &call.session.project, view.clone()));
    let place = format!("{}/v2/images/{id}", super::seed::IMAGE);
    Ok(Response::json(201, &view).with("Location", &place))
}

fn may_publish(call: &Call, visibility: &str) -> Result<(), Response> {
    if visibility == "public" && !call.session.admin {
        let message = "You are not authorized to complete publicize_image action.";
        return Err(error_page(call.request, 403, "Forbidden", message));
    }
    Ok(())
}

fn list(state: &State, call: &Call) -> Response {
    let (request, session) = (call.request, &call.session);
    let tags: Vec<&String> = request.query.iter().filter(|(name, _)| name == "tag").map(|(_, tag)| tag).collect();
    let tagged =
        |view: &Value| tags.iter().all(|tag| view["tags"].as_array().is_some_and(|all| all.contains(&json!(tag))));
    let shown = |image: &&Item| {
        let mine = image.project == session.project || image.text("visibility") == "public";
        mine || (request.query_value("visibility") == Some("community") && image.text("visibility") == "community")
    };
    // A filter by an unknown name refers to a custom property; images without it do not match.
    let has = |view: &Value| {
        let names = request.query.iter().map(|(name, _)| name).filter(|name| !NOT_FILTERS.contains(&name.as_str()));
        names.into_iter().all(|name| view.get(name).is_some())
    };
    let images = state.images.iter().filter(shown).map(|image| &image.view);
    let mut images: Vec<&Value> =
        images.filter(|view| has(view) && matches_query(request, view, &NOT_FILTERS) && tagged(view)).collect();
    images.reverse();
    let first = request.target.split_once("/v2").map_or("", |(_, path)| path);
    let first = format!("/v2{first}");
    Response::json(200, &json!({"images": images, "first": first, "schema": "/v2/schemas/images"}))
}

fn patch(state: &mut State, call: &Call, id: &str) -> Answer {
    let kind = call.request.header("content-type").unwrap_or_default();
    if !kind.starts_with("application/openstack-images-v2.") {
        return Err(unsupported(call.request));
    }
    let operations =
        call.body.as_array().ok_or_else(|| bad_request(call.request, "Request body must be a JSON array"))?;
    for operation in operations {
        if operation["path"] == "/visibility" {
            may_publish(call, operation["value"].as_str().unwrap_or_default())?;
        }
    }
    let image = find_own(state, call, id, "modify_image")?;
    for operation in operations {
        let key = operation["path"].as_str().unwrap_or_default().trim_start_matches('/').replace("~1", "/");
        if READ_ONLY.contains(&key.as_str()) {
            return Err(error_page(call.request, 403, "Forbidden", &format!("Attribute '{key}' is read-only.")));
        }
        match (operation["op"].as_str(), image.view.as_object_mut()) {
            (Some("add" | "replace"), Some(view)) => drop(view.insert(key, operation["value"].clone())),
            (Some("remove"), Some(view)) => drop(view.shift_remove(&key)),
            _ => return Err(bad_request(call.request, "Operations must be JSON objects.")),
        }
    }
    image.view["updated_at"] = json!(clock::now() + "Z");
    Ok(Response::json(200, &image.view))
}

fn delete(state: &mut State, call: &Call, id: &str) -> Answer {
    let image = find_own(state, call, id, "delete_image")?;
    if image.view["protected"] == true {
        let message = format!("Image {id} is protected and cannot be deleted.");
        return Err(error_page(call.request, 403, "Forbidden", &message));
    }
    state.images.remove(id);
    Ok(Response::new(204))
}

fn tag_with(state: &mut State, call: &Call, id: &str, tag: &str, wanted: bool) -> Answer {
    let image = find_own(state, call, id, "modify_image")?;
    if let Some(tags) = image.view["tags"].as_array_mut() {
        tags.retain(|known| known != tag);
        if wanted {
            tags.push(json!(tag));
        }
    }
    Ok(Response::new(204))
}

fn bad_request(request: &Request, message: &str) -> Response {
    error_page(request, 400, "Bad Request", message)
}
