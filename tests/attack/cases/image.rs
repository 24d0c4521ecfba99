//! The stemcell image: which file is accepted, what a guest can read of it, where it
//! can send it, and malformed archives.

mod archives;
mod blocks;
mod handle;
mod paths;

use crate::case::Case;
use serde_json::{Value, json};
use std::path::Path;
use tests::{Job, Response, probe};

const CLASS: &str = "stemcell image";

pub(super) fn cases() -> Vec<Case> {
    [paths::cases(), handle::cases(), archives::cases(), blocks::cases()].into_iter().flatten().collect()
}

/// Calls `create_stemcell` with a script for the guest.
fn create(job: &Job, image: &Path, script: &Value) -> Response {
    job.call("create_stemcell", json!([image, {"probe": script}])).run()
}

/// Returns the outcomes of a script. Panics if the call fails.
#[track_caller]
fn outcomes(job: &Job, image: &Path, script: &Value) -> Vec<Value> {
    probe::outcomes(create(job, image, script).result())
}

#[track_caller]
fn unwrap_io<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
