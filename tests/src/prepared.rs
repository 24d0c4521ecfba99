//! Jobs with a guest that compiles fast, and what lies in their caches: most of
//! what is about prepared guests prepares again and again.

use crate::job::write;
use crate::{Job, Response, dist, hostile};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

pub fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

/// `true`, if it is the guest of `small`.
pub fn has_vm(job: &Job) -> Response {
    job.call("has_vm", json!(["vm-1"])).run()
}

/// Has every VM; its cache is its own and empty.
pub fn small() -> Job {
    Job::new().guest_bytes(&hostile::guest("small"))
}

/// The same, prepared.
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

/// Works, and says why the guest was prepared anew; the next call says nothing.
#[track_caller]
pub fn is_prepared_anew(job: &Job, said: &str) {
    let first = has_vm(job);
    assert_eq!(*first.result(), true);
    assert!(first.stderr.contains("wasm-cpi warn: ") && first.stderr.contains(said), "no `{said}` in {}", first.stderr);
    assert!(first.stderr.contains("; the guest is prepared anew\n"), "{}", first.stderr);
    let second = has_vm(job);
    assert_eq!((second.result(), second.stderr.as_str()), (&json!(true), ""));
}

/// Works without what lies there, every time, and says why.
#[track_caller]
pub fn is_not_used(job: &Job, said: &str) {
    for _ in 0..2 {
        let response = has_vm(job);
        assert_eq!(*response.result(), true);
        assert!(response.stderr.contains(said), "no `{said}` in {}", response.stderr);
        assert!(response.stderr.contains("it is not used\n"), "{}", response.stderr);
        assert!(response.stderr.contains("every call compiles it again"), "{}", response.stderr);
    }
}

/// Makes the job's artifact one of another version of the engine, which is what
/// its name says and its manifest names.
#[track_caller]
pub fn becomes_another_engines(job: &Job) {
    let (old, manifest) = (artifact(job), manifest(job));
    let mut bytes = fs::read(&old).unwrap_or_else(|error| panic!("{}: {error}", old.display()));
    // The section `.wasmtime.engine` begins with a format, the version's length and the version.
    let major = engine_version();
    let engine = [&[0, u8::try_from(major.len()).unwrap_or(0)], major.as_bytes()].concat();
    let at = (0..bytes.len() - engine.len()).find(|at| bytes[*at..].starts_with(&engine));
    bytes[at.unwrap_or_else(|| panic!("no version of the engine in the artifact")) + 2] ^= 1;
    let name = format!("{}.cwasm", blake3::hash(&bytes).to_hex());
    write(&job.cache_dir().join(&name), &bytes);
    let text = fs::read_to_string(&manifest).unwrap_or_default();
    let known = old.file_name().unwrap_or_default().to_string_lossy().into_owned();
    write(&manifest, text.replace(&known, &name).as_bytes());
    let _ = fs::remove_file(&old);
}

/// The major version, as the workspace's lock file has it.
fn engine_version() -> String {
    let lock = fs::read_to_string(dist::root().join("Cargo.lock")).unwrap_or_default();
    let rest = lock.split_once("name = \"wasmtime\"\nversion = \"").map(|(_, rest)| rest.to_owned());
    rest.and_then(|rest| rest.split('.').next().map(str::to_owned)).unwrap_or_else(|| panic!("no wasmtime is locked"))
}
