//! Nova: which request is whose, and the microversion of each.

use super::message::{Answer, Response, fault, nowhere};
use super::simulator::Call;
use super::state::State;
use super::{attachments, creating, extras, groups, servers, tagging, versions};

pub(super) fn answer(state: &mut State, call: &Call) -> Answer {
    let version = versions::of_compute(call.request)?;
    let answer = route(state, call, version);
    let said = |response: Response| {
        response
            .with("OpenStack-API-Version", &format!("compute 2.{version}"))
            .with("X-OpenStack-Nova-API-Version", &format!("2.{version}"))
            .with("Vary", "OpenStack-API-Version")
            .with("Vary", "X-OpenStack-Nova-API-Version")
    };
    // It names the kind of every body, even of none.
    let whole = |response: Response| match response.header("content-type") {
        None => response.with("Content-Type", "application/json"),
        Some(_) => response,
    };
    let typed = |mut response: Response| {
        for (_, value) in response.headers.iter_mut().filter(|(_, value)| value == "application/json") {
            value.push_str("; charset=UTF-8");
        }
        response
    };
    answer.map(whole).map(said).map_err(typed).map_err(said)
}

fn route(state: &mut State, call: &Call, version: u32) -> Answer {
    match call.route() {
        ("POST", ["servers"]) => creating::create(state, call, version),
        ("GET", ["servers"]) => servers::list(state, call, version, false),
        ("GET", ["servers", "detail"]) => servers::list(state, call, version, true),
        (_, ["servers", id, "os-volume_attachments", ..]) => attachments::answer(state, call, version, id),
        (_, ["servers", id, "metadata" | "tags", ..]) => tagging::answer(state, call, version, id),
        ("GET", ["servers", id, "os-interface"]) => extras::interfaces(state, call, id),
        (_, ["servers", id, ..]) => servers::answer(state, call, version, id),
        (_, ["os-server-groups", ..]) => groups::answer(state, call, version),
        (_, ["flavors" | "os-keypairs" | "os-availability-zone" | "os-quota-sets", ..]) => {
            extras::answer(state, call, version)
        }
        ("GET", ["os-hypervisors" | "os-services", ..]) => {
            let policy = "Policy doesn't allow os_compute_api:os-hypervisors:list to be performed.";
            call.admin(|| fault(403, policy))?;
            Err(nowhere(call.request))
        }
        _ => Err(nowhere(call.request)),
    }
}
