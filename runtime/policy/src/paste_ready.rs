//! Writes the grant that a denial offers, ready to be pasted into the policy.
//!
//! The grant allows one method at one origin, for the pattern of paths that the module
//! declares, or for the one path of the request if the module declares everything. It never
//! has secrets, auth, slots, CIDRs or wildcard hosts: the operator has to decide about those.

use std::sync::Arc;

use serde_json::json;

use super::grant::{Grant, GrantSpec};
use super::needs::{ResolvedNeed, Restriction};
use super::origin::OriginSpec;
use super::path::PathPattern;
use super::problem::Problems;
use crate::destination::Destination;
use wasm_cpi_checks::Check;

/// Returns one line of JSON, or `None` if no valid grant can be written for this request.
pub(super) fn grant_to_paste(
    by: &ResolvedNeed,
    declared: &PathPattern,
    destination: &Destination,
    method: &str,
    grants: &[Arc<Grant>],
) -> Option<String> {
    let need = &by.need;
    let everything = need.to == Restriction::Any || need.methods == Restriction::Any || *declared == PathPattern::any();
    let vague = Check::HintNarrow.choose(everything, false);
    let below = by.base.strip(destination.path());
    let path = match below {
        _ if !vague => declared.to_string(),
        Some(below) => below.to_owned(),
        None => destination.path().to_owned(),
    };
    if vague && path.contains('*') {
        return None;
    }
    // A property by its name: its value may be one that no message shows.
    let to = match &need.to {
        Restriction::Only(spec @ (OriginSpec::Property(_) | OriginSpec::Label { .. })) if !vague || below.is_some() => {
            spec.to_string()
        }
        _ => destination.origin(),
    };
    let id = free_id(&need.id, &|id| grants.iter().any(|grant| grant.id == id));
    let grant = json!({"id": id, "to": to, "methods": [method], "paths": [path]});
    let problems = Problems::default();
    GrantSpec::read(&grant, String::new(), &problems)?;
    problems.is_empty().then(|| grant.to_string())
}

/// Returns `wanted`, followed by a number if that id is taken.
pub(super) fn free_id(wanted: &str, taken: &dyn Fn(&str) -> bool) -> String {
    if !taken(wanted) {
        return wanted.to_owned();
    }
    let stem: String = wanted.chars().take(56).collect();
    let numbered = (2..10_000).map(|number| format!("{stem}-{number}")).find(|id| !taken(id));
    numbered.unwrap_or_else(|| wanted.to_owned())
}
