//! Uploads of image data: the bytes are counted and hashed, but not stored.

use super::clock;
use super::image::{find, missing, unsupported};
use super::message::{Answer, Request, Response, error_page};
use super::simulator::Simulator;
use super::state::Session;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use std::io::Read;

pub(super) fn is_upload(request: &Request, parts: &[&str]) -> bool {
    request.method == "PUT" && matches!(parts, ["images", _, "file"])
}

/// Handles an upload. Other requests are served while it runs. If it ends early, the
/// image waits for an upload again.
pub(super) fn upload(
    simulator: &Simulator,
    session: &Session,
    request: &Request,
    id: &str,
    body: &mut dyn Read,
) -> Answer {
    if request.header("content-type") != Some("application/octet-stream") {
        return Err(unsupported(request));
    }
    start_upload(simulator, session, request, id)?;
    let counted = count_and_hash(body);
    let mut state = simulator.lock();
    let Some(image) = state.images.get_mut(id) else {
        return Err(error_page(request, 410, "Gone", &format!("Image {id} was deleted during the upload")));
    };
    let Some((size, digest)) = counted else {
        image.view["status"] = json!("queued");
        return Err(error_page(request, 400, "Bad Request", "The upload ended before it was complete"));
    };
    let raw = image.view["disk_format"] == "raw";
    let view: [(&str, Value); 8] = [
        ("status", json!("active")),
        ("size", json!(size)),
        ("virtual_size", if raw { json!(size) } else { Value::Null }),
        ("stores", json!("file")),
        ("checksum", json!(digest[..32])),
        ("os_hash_algo", json!("sha512")),
        ("os_hash_value", json!(digest)),
        ("updated_at", json!(clock::now() + "Z")),
    ];
    for (key, value) in view {
        image.view[key] = value;
    }
    Ok(Response::new(204))
}

fn start_upload(simulator: &Simulator, session: &Session, request: &Request, id: &str) -> Result<(), Response> {
    let mut state = simulator.lock();
    find(&state, session, request, id)?;
    let image = state.images.get_mut(id).ok_or_else(|| missing(request, id))?;
    if !session.sees(&image.project) {
        let message = "You are not authorized to complete upload_image action.";
        return Err(error_page(request, 403, "Forbidden", message));
    }
    if image.view["disk_format"].is_null() || image.view["container_format"].is_null() {
        return Err(error_page(
            request,
            400,
            "Bad Request",
            "Properties disk_format, container_format must be set prior to saving data.",
        ));
    }
    let status = image.text("status");
    if status != "queued" {
        let message = format!("Image status transition from {status} to saving is not allowed");
        return Err(error_page(request, 409, "Conflict", &message));
    }
    image.view["status"] = json!("saving");
    Ok(())
}

/// Returns length and SHA-512 of the body; `None` if it is incomplete.
fn count_and_hash(body: &mut dyn Read) -> Option<(u64, String)> {
    let (mut digest, mut size, mut chunk) = (Sha512::new(), 0, vec![0; 64 * 1024]);
    loop {
        match body.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                digest.update(&chunk[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some((size, digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}
