//! Jobs with a guest that compiles fast, and the files in their caches. Tests of
//! prepared guests compile many times.

use crate::job::write;
use crate::{Job, Response, dist, hostile};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

pub fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

/// Calls `has_vm`, which is true for the guest of `small()`.
pub fn has_vm(job: &Job) -> Response {
    job.call("has_vm", json!(["vm-1"])).run()
}

/// Returns a job with the guest `small`, whose `has_vm` is always true, and an empty
/// cache of its own.
pub fn small() -> Job {
    Job::new().guest_bytes(&hostile::guest("small"))
}

/// Returns the job of `small()` after its guest was prepared.
#[track_caller]
pub fn prepared() -> Job {
    let job = small();
    assert_eq!((has_vm(&job).result(), has_vm(&job).stderr.as_str()), (&json!(true), ""));
    job
}

#[track_caller]
pub fn artifact(job: &Job) -> PathBuf {
    only(job.cached(".cwasm"))
}

#[track_caller]
pub fn manifest(job: &Job) -> PathBuf {
    only(job.cached(".json"))
}

#[track_caller]
fn only(mut found: Vec<PathBuf>) -> PathBuf {
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Asserts that the next call succeeds, prepares the guest again and reports this
/// reason, and that the call after it uses the cache without a message.
#[track_caller]
pub fn assert_prepared_again(job: &Job, reason: &str) {
    let first = has_vm(job);
    assert_eq!(*first.result(), true);
    assert!(
        first.stderr.contains("wasm-cpi warn: ") && first.stderr.contains(reason),
        "no `{reason}` in {}",
        first.stderr
    );
    assert!(first.stderr.contains("; the guest is prepared again"), "{}", first.stderr);
    let second = has_vm(job);
    assert_eq!((second.result(), second.stderr.as_str()), (&json!(true), ""));
}

/// Asserts that every call succeeds without the cache and reports this reason.
#[track_caller]
pub fn assert_cache_ignored(job: &Job, reason: &str) {
    for _ in 0..2 {
        let response = has_vm(job);
        assert_eq!(*response.result(), true);
        assert!(response.stderr.contains(reason), "no `{reason}` in {}", response.stderr);
        assert!(response.stderr.contains("the cache is not used"), "{}", response.stderr);
        assert!(response.stderr.contains("every call compiles it again"), "{}", response.stderr);
    }
}

/// Changes the engine version in the job's artifact and renames the artifact to its
/// new digest, also in the manifest, so that only the engine can notice.
#[track_caller]
pub fn change_engine_version(job: &Job) {
    let (old, manifest) = (artifact(job), manifest(job));
    let mut bytes = fs::read(&old).unwrap_or_else(|error| panic!("{}: {error}", old.display()));
    // The section `.wasmtime.engine` starts with a format, the version's length and the version.
    let major = engine_version();
    let engine = [&[0, u8::try_from(major.len()).unwrap_or(0)], major.as_bytes()].concat();
    let at = (0..bytes.len() - engine.len()).find(|at| bytes[*at..].starts_with(&engine));
    bytes[at.unwrap_or_else(|| panic!("the artifact does not contain the engine's version")) + 2] ^= 1;
    let name = format!("{}.cwasm", blake3::hash(&bytes).to_hex());
    write(&job.cache_dir().join(&name), &bytes);
    let text = fs::read_to_string(&manifest).unwrap_or_default();
    let known = old.file_name().unwrap_or_default().to_string_lossy().into_owned();
    write(&manifest, text.replace(&known, &name).as_bytes());
    let _ = fs::remove_file(&old);
}

/// Returns the major version of wasmtime from the workspace's lock file.
fn engine_version() -> String {
    let lock = fs::read_to_string(dist::root().join("Cargo.lock")).unwrap_or_default();
    let rest = lock.split_once("name = \"wasmtime\"\nversion = \"").map(|(_, rest)| rest.to_owned());
    rest.and_then(|rest| rest.split('.').next().map(str::to_owned))
        .unwrap_or_else(|| panic!("Cargo.lock does not contain wasmtime"))
}
