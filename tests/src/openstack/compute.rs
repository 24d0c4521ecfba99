//! Nova: reads the microversion of each request and passes the request to its handler.

use super::message::{Answer, Response, fault, not_found};
use super::simulator::Call;
use super::state::State;
use super::{compute_resources, server_create, server_groups, server_metadata, servers, versions, volume_attachments};

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    let version = versions::requested_compute_version(call.request)?;
    let answer = route(state, call, version);
    let with_version = |response: Response| {
        response
            .with("OpenStack-API-Version", &format!("compute 2.{version}"))
            .with("X-OpenStack-Nova-API-Version", &format!("2.{version}"))
            .with("Vary", "OpenStack-API-Version")
            .with("Vary", "X-OpenStack-Nova-API-Version")
    };
    // Nova sends a content type even for empty bodies.
    let with_type = |response: Response| match response.header("content-type") {
        None => response.with("Content-Type", "application/json"),
        Some(_) => response,
    };
    let with_charset = |mut response: Response| {
        for (_, value) in response.headers.iter_mut().filter(|(_, value)| value == "application/json") {
            value.push_str("; charset=UTF-8");
        }
        response
    };
    answer.map(with_type).map(with_version).map_err(with_charset).map_err(with_version)
}

fn route(state: &mut State, call: &Call, version: u32) -> Answer {
    match call.route() {
        ("POST", ["servers"]) => server_create::create(state, call, version),
        ("GET", ["servers"]) => servers::list(state, call, version, false),
        ("GET", ["servers", "detail"]) => servers::list(state, call, version, true),
        (_, ["servers", id, "os-volume_attachments", ..]) => volume_attachments::answer(state, call, version, id),
        (_, ["servers", id, "metadata" | "tags", ..]) => server_metadata::answer(state, call, version, id),
        ("GET", ["servers", id, "os-interface"]) => compute_resources::interfaces(state, call, id),
        (_, ["servers", id, ..]) => servers::answer(state, call, version, id),
        (_, ["os-server-groups", ..]) => server_groups::answer(state, call, version),
        (_, ["flavors" | "os-keypairs" | "os-availability-zone" | "os-quota-sets", ..]) => {
            compute_resources::answer(state, call, version)
        }
        ("GET", ["os-hypervisors" | "os-services", ..]) => {
            let policy = "Policy doesn't allow os_compute_api:os-hypervisors:list to be performed.";
            call.check_admin(|| fault(403, policy))?;
            Err(not_found(call.request))
        }
        _ => Err(not_found(call.request)),
    }
}
