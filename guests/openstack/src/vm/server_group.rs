//! The server group of an instance group, for anti-affinity. A Director creates the VMs of an
//! instance group in parallel, and Nova accepts several groups with one name, so calls that find
//! none have to agree on one of those that they create.
//!
//! Nova shows neither when a group was created nor lists groups in a certain order, so the oldest
//! is not known. The rule is one that every call can apply to what it reads:
//!
//! 1. A group with members is in use. It is taken, and it is never deleted.
//! 2. Otherwise the call waits longer than another call needs from its own reading to its own
//!    creating, and reads again. Then no group can appear any more, and every call sees the same
//!    groups. It takes the one with the smallest ID, or by now one with members.
//! 3. A call deletes only the group that it created itself, if it takes another one.
//!
//! If a call is slower than the others wait, two groups may stay; both work. If it takes a group
//! that is deleted, Nova refuses the server, and the Director may try again (`Failure`).

use std::cell::RefCell;
use std::time::Duration;

use wasm_cpi_sdk::{Error, clock, config, http, log};

use crate::api::{Groups, ServerGroup, create_once};
use crate::session::Session;

const TURN_OFF: &str = "set the property enable_auto_anti_affinity: false";

/// How long to wait for the groups of parallel calls: as many times longer than this call needed
/// itself, within these bounds. Calls of one Director use the same, equally busy cloud.
const SAFETY_FACTOR: u32 = 3;
const SHORTEST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// Returns the ID of the server group of an instance group of this Director. The first VM creates
/// it.
pub(super) fn find_or_create(session: &Session, group: &str) -> Result<String, Error> {
    let name = format!("{}-{group}", config::call().director_uuid.unwrap_or_default());
    let compute = session.compute()?;
    let groups = compute.groups().map_err(|error| {
        Error::cloud(format!(
            "reading the versions of Nova for server groups: {error}; if this error persists, {TURN_OFF}"
        ))
    })?;
    let start = clock::monotonic();
    let found = groups.named_until_used(&name).map_err(explain)?;
    if let Some(used) = choose(&found).filter(|group| !group.members.is_empty()) {
        return Ok(used.id.clone());
    }
    let own = if found.is_empty() { create(&groups, &name)? } else { None };
    // A call that creates no group needs about as long for creating one as for reading.
    let requests = if found.is_empty() { 1 } else { 2 };
    let needed = clock::monotonic().saturating_sub(start) * requests;
    let waited = clock::sleep((needed * SAFETY_FACTOR).clamp(SHORTEST_WAIT, LONGEST_WAIT));
    let found = groups.named(&name).map_err(explain)?;
    let chosen = choose(&found).ok_or_else(|| {
        let what = format!(
            "server group `{name}` was deleted while a VM was created in it; something else deleted it, try again"
        );
        Error::vm_creation_failed(what).ok_to_retry(true)
    })?;
    if let Some(own) = own.filter(|own| *own != chosen.id) {
        delete(&groups, &found, &own);
    }
    // If the call is ending, its own group is deleted if there is another one.
    waited?;
    Ok(chosen.id.clone())
}

/// Returns the group that every call chooses from these: one with members, and the one with the
/// smallest ID of several.
fn choose(groups: &[ServerGroup]) -> Option<&ServerGroup> {
    groups.iter().min_by_key(|group| (group.members.is_empty(), &group.id))
}

/// Creates a group. Returns its ID, or `None` if the answer got lost: then it is not known which
/// of the groups is this call's.
fn create(groups: &Groups<'_>, name: &str) -> Result<Option<String>, Error> {
    let own = RefCell::new(None);
    let post = || {
        let made = groups.create(name)?;
        own.replace(Some(made.id.clone()));
        Ok(made)
    };
    let find = || Ok(groups.named(name)?.into_iter().next());
    create_once(&format!("server group {name}"), post, find).map_err(explain)?;
    Ok(own.into_inner())
}

/// Deletes this call's group, unless another call put a server into it. A group that stays is not
/// used any more, and does no harm.
fn delete(groups: &Groups<'_>, found: &[ServerGroup], own: &str) {
    if !found.iter().any(|group| group.id == own && group.members.is_empty()) {
        return;
    }
    log::debug(format_args!("a parallel call created the same server group; deleting {own}"));
    if let Err(error) = groups.delete(own) {
        log::warn(format_args!("{error}; server group {own} is left in the cloud, and is not used"));
    }
}

fn explain(error: http::RequestError) -> Error {
    match error.status() {
        Some(403) => Error::cloud(format!("{error}; raise the project's quota of server groups, or {TURN_OFF}")),
        Some(400 | 406) => Error::cloud(format!("{error}; anti-affinity needs Nova's API 2.15; {TURN_OFF}")),
        _ => Error::from(error),
    }
}
