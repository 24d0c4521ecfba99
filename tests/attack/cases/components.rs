//! The guest's file: what it is instead of a component, what it imports, declares
//! and says of itself, and what it does to whoever compiles it.

mod bombs;
mod files;
mod imports;
mod needs;
mod pins;
mod preparing;

use crate::case::Case;
use serde_json::json;
use tests::{CPI_ERROR, Job, Response, hostile};

const CLASS: &str = "component files";

pub(super) fn cases() -> Vec<Case> {
    let all = [files::cases(), pins::cases(), imports::cases(), needs::cases(), preparing::cases(), bombs::cases()];
    all.into_iter().flatten().collect()
}

fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

fn has_vm(job: &Job) -> Response {
    job.call("has_vm", json!(["vm-1"])).run()
}

/// A component from text that must be one.
fn component(text: &str) -> Vec<u8> {
    hostile::component(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Refused as a mistake of the operator's, who is told what; nothing is stored.
#[track_caller]
fn refused(job: &Job, said: &[&str]) {
    info(job).fails(CPI_ERROR, &["config: ", "guest"]).fails(CPI_ERROR, said);
    assert!(job.cached(".json").is_empty(), "it was stored");
}
