//! Nova's metadata service, from which a VM's agent reads the data of its own server.
//!
//! The proxy in front of the service sends the server's id and signs it. A client that
//! knows the shared secret can send requests as if it ran inside the VM.

use super::message::{Answer, Request, Response, error_page, not_found};
use super::seed;
use super::simulator::Simulator;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::json;

pub(super) fn answer(simulator: &Simulator, request: &Request) -> Answer {
    let header = |name: &str, code: u16| {
        let missing = || error_page(request, code, "Bad Request", &format!("{name} header is missing from request."));
        request.header(name).ok_or_else(missing)
    };
    let id = header("X-Instance-ID", 400)?;
    let tenant = header("X-Tenant-ID", 400)?;
    let signature = header("X-Instance-ID-Signature", 400)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, seed::SHARED_SECRET.as_bytes());
    let signed: String = hmac::sign(&key, id.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    if signature != signed {
        return Err(error_page(request, 403, "Forbidden", "Invalid proxy request signature."));
    }
    let state = simulator.lock();
    let server = state.servers.get(id).filter(|server| server.project == tenant).ok_or_else(|| not_found(request))?;
    match request.path.trim_end_matches('/') {
        "/openstack/latest/user_data" | "/latest/user-data" => {
            let encoded = server.hidden["user_data"].as_str().ok_or_else(|| not_found(request))?;
            let body = STANDARD.decode(encoded).unwrap_or_default();
            Ok(Response { body, ..Response::new(200) }.with("Content-Type", "text/plain; charset=UTF-8"))
        }
        "/openstack/latest/meta_data.json" => Ok(Response::json(
            200,
            &json!({
                "uuid": id, "name": server.view["name"], "hostname": server.hidden["hostname"], "launch_index": 0,
                "availability_zone": server.view["OS-EXT-AZ:availability_zone"], "meta": server.view["metadata"],
                "project_id": server.project, "devices": [],
            }),
        )),
        "/openstack/latest" => Ok(Response { body: b"meta_data.json\nuser_data".to_vec(), ..Response::new(200) }),
        _ => Err(not_found(request)),
    }
}
