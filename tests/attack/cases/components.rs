//! The guest's file: files that are not a component, imports, needs and
//! descriptions that are wrong, and attacks on the compiling process.

mod bombs;
mod files;
mod imports;
mod needs;
mod pins;
mod preparation;

use crate::case::Case;
use serde_json::json;
use tests::{CPI_ERROR, Job, Response, hostile};

const CLASS: &str = "component files";

pub(super) fn cases() -> Vec<Case> {
    let all = [files::cases(), pins::cases(), imports::cases(), needs::cases(), preparation::cases(), bombs::cases()];
    all.into_iter().flatten().collect()
}

fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

fn has_vm(job: &Job) -> Response {
    job.call("has_vm", json!(["vm-1"])).run()
}

/// Returns the component of a text. Panics if the text is wrong.
fn component(text: &str) -> Vec<u8> {
    hostile::component(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Asserts that the guest is refused as a mistake in the config, with this message,
/// and that nothing is stored.
#[track_caller]
fn assert_refused(job: &Job, said: &[&str]) {
    info(job).fails(CPI_ERROR, &["config: ", "guest"]).fails(CPI_ERROR, said);
    assert!(job.cached(".json").is_empty(), "the guest was stored");
}
