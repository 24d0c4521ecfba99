//! A grant to paste, made from what the module declares and what it asked for.
//!
//! It opens one origin for one method and, where the module declared a pattern
//! of its own, that pattern of paths, else the one path. It never holds secrets,
//! auth, slots, CIDRs or wildcard hosts: those are for the operator to think of.

use std::sync::Arc;

use serde_json::json;

use super::grant::{Grant, GrantSpec};
use super::needs::{Declared, Wanted};
use super::origin::OriginSpec;
use super::path::PathPattern;
use super::problem::Problems;
use crate::holes::Check;
use crate::net::destination::Destination;

/// One line of JSON, or nothing where such a grant could not be written.
pub(super) fn paste_ready(
    by: &Declared,
    declared: &PathPattern,
    destination: &Destination,
    method: &str,
    grants: &[Arc<Grant>],
) -> Option<String> {
    let need = &by.need;
    let vague = Check::HintNarrow.on()
        && (need.to == Wanted::Whatever || need.methods == Wanted::Whatever || *declared == PathPattern::any());
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
        Wanted::Only(spec @ (OriginSpec::Property(_) | OriginSpec::Label { .. })) if !vague || below.is_some() => {
            spec.to_string()
        }
        _ => destination.origin(),
    };
    let id = free_id(&need.id, &|id| grants.iter().any(|grant| grant.id == id));
    let grant = json!({"id": id, "to": to, "methods": [method], "paths": [path]});
    let problems = Problems::default();
    GrantSpec::read(&grant, String::new(), 0, &problems)?;
    problems.is_empty().then(|| grant.to_string())
}

/// `wanted`, or with a number behind it if it is taken.
pub(super) fn free_id(wanted: &str, taken: &dyn Fn(&str) -> bool) -> String {
    if !taken(wanted) {
        return wanted.to_owned();
    }
    let stem: String = wanted.chars().take(56).collect();
    let numbered = (2..10_000).map(|number| format!("{stem}-{number}")).find(|id| !taken(id));
    numbered.unwrap_or_else(|| wanted.to_owned())
}
