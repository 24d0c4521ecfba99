//! Words why the grants that came closest to a request do not allow it.

use super::grant::Grant;
use super::operations::quoted;
use super::stages::{Mismatch, StageMismatch};
use super::verdict::DenialReason;
use crate::destination::Destination;

/// Describes what the grants that came closest to the request allow.
pub(super) fn explain(stage: DenialReason, nearest: &[(&Grant, &StageMismatch)], destination: &Destination) -> String {
    let grants = |what: &str, show: &dyn Fn(&Grant, &StageMismatch) -> String| {
        let named = |(grant, failed): &(&Grant, &StageMismatch)| match &failed.mismatch {
            Some(Mismatch::Field(owner, _) | Mismatch::Uncertain(owner, _)) => {
                format!("`{owner}` {}", show(grant, failed))
            }
            _ => format!("`{}` {}", grant.id, show(grant, failed)),
        };
        let mut each: Vec<String> = nearest.iter().take(4).map(named).collect();
        each.dedup();
        format!("{what}: {}", each.join(", "))
    };
    match stage {
        DenialReason::Scheme => format!("no grant is for {}://", destination.scheme().as_str()),
        DenialReason::Host => format!("no grant names the host {}", destination.host()),
        DenialReason::Port => {
            grants("the host's grants are for other ports", &|grant, _| grant.origin.port.to_string())
        }
        DenialReason::Method => grants("the origin's grants allow other methods", &|grant, _| grant.methods.join(" ")),
        DenialReason::Path => grants("the origin's grants allow other paths", &|grant, _| {
            let paths: Vec<String> = grant.paths.iter().take(8).map(ToString::to_string).collect();
            paths.join(" ")
        }),
        DenialReason::Query => grants("the origin's grants allow other query parameters", &|grant, failed| {
            let allow = grant.query.as_deref().unwrap_or_default().join(" ");
            let allow = if allow.is_empty() { "none".to_owned() } else { allow };
            let Some(Mismatch::Query(parameter)) = &failed.mismatch else { return allow };
            let parameter = if parameter == ";" { "`;`".to_owned() } else { quoted(parameter) };
            format!("{allow}, not {parameter}")
        }),
        DenialReason::Operation => grants("the origin's grants allow other operations or fields", &|grant, failed| {
            let allow = grant.operations.as_ref().map(|operations| operations.allow.join(" "));
            match &failed.mismatch {
                Some(Mismatch::Operation(mismatch)) => format!("{}, {mismatch}", allow.unwrap_or_default()),
                Some(Mismatch::Field(_, mismatch)) => format!("limits the fields of the request: {mismatch}"),
                Some(Mismatch::Uncertain(_, why)) => format!("limits the fields of {why}"),
                Some(Mismatch::Query(_)) | None => allow.unwrap_or_default(),
            }
        }),
        _ => "it has no grants for HTTP requests".to_owned(),
    }
}
