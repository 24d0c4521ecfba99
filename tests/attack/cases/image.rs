//! The stemcell's image: which file becomes one, what a guest can read of it and
//! where it can send it, and archives that lie.

mod archives;
mod handle;
mod paths;

use crate::case::Case;
use serde_json::{Value, json};
use std::path::Path;
use tests::{Job, Response, probe};

const CLASS: &str = "stemcell image";

pub(super) fn cases() -> Vec<Case> {
    [paths::cases(), handle::cases(), archives::cases()].into_iter().flatten().collect()
}

/// A `create_stemcell` whose guest runs a script.
fn create(job: &Job, image: &Path, script: &Value) -> Response {
    job.call("create_stemcell", json!([image, {"probe": script}])).run()
}

/// The outcomes of a script that ran to its end.
#[track_caller]
fn outcomes(job: &Job, image: &Path, script: &Value) -> Vec<Value> {
    probe::outcomes(create(job, image, script).result())
}

#[track_caller]
fn done<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
