//! Leaks are remembered: a guest cannot go on with guessing in the next call.

use crate::case::{API, Case};
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use tests::job::{set_mode, write};
use tests::{Job, Response, dist, probe};

const CLASS: &str = "secrets";

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, mutants: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, mutants, attempt).may_contact(API)
    };
    vec![
        case("calls after a leak are refused until the operator forgets it", &["leak-latched"], latches),
        case("a leak in a result is remembered, too", &["result-withheld"], latches_after_a_result),
        case("with `leaks` set to `end`, only the call ends", &[], only_ends),
        case("a leak of one guest does not stop another", &[], other_modules_go_on),
        case("a link in place of the file that remembers leaks", &["latch-trust"], follows_no_link),
        case("a file that remembers leaks and that others can write", &["latch-trust"], trusts_no_other_user),
        case("a leak in a directory in which others can write", &["cache-directory"], trusts_no_writable_directory),
    ]
}

/// Returns a job whose server sends the credential, with the strictest lock-down.
fn job(world: &World, config: Value) -> Result<Job, String> {
    let mut row = json!({"config": {"cache": "../cache", "hardening": "required"}});
    tests::rows::merge_patch(&mut row["config"], &config);
    world.reset(row::names(&Value::Null), served())?;
    let job = row::job(world, &row);
    // The cache is the job's own, so it has to be filled first.
    job.call("info", json!([])).run().result();
    Ok(job)
}

fn served() -> Served {
    Served::new(
        &json!({"api.iaas.test/v1/leak": {"body": "cAnArY7secret-property"}, "api.iaas.test": {"body": "fine"}}),
    )
}

fn call(job: &Job, path: &str) -> Response {
    let script = json!([{"op": "http", "url": format!("https://api.iaas.test/v1/{path}")}]);
    job.call("has_vm", json!([probe::cid(&script)])).run()
}

fn expect(response: &Response, parts: &[&str]) -> Result<(), String> {
    let text = response.json.to_string();
    match parts.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(format!("no `{part}` in {text}")),
        None => Ok(()),
    }
}

fn expect_answered(response: &Response) -> Result<(), String> {
    expect(response, &["probe outcomes: ", "\\\"status\\\":200"])
}

fn forget(arguments: &[&OsStr]) -> String {
    let mut command = Command::new(dist::tool());
    let output = command.arg("forget-leaks").args(arguments).output().unwrap_or_else(|error| panic!("{error}"));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const REFUSED: &[&str] =
    &["policy: the response to GET https://api.iaas.test/v1/leak held the credential `password`", "[leak-latched]"];

fn latches(world: &World) -> Result<(), String> {
    let job = job(world, json!({}))?;
    expect_answered(&call(&job, "fine"))?;
    expect(
        &call(&job, "leak"),
        &["held the credential `password` and was withheld", "wasm-cpi forget-leaks --config"],
    )?;
    for path in ["fine", "leak"] {
        expect(&call(&job, path), REFUSED)?;
    }
    let (passed, output) = job.check();
    if passed || !output.contains("held the credential `password`") {
        return Err(format!("check passed: {passed}: {output}"));
    }
    // `bin/cpi` of a release writes the path of the config with `..`, and operators do not.
    let config = job.path("other/../config/cpi.json");
    fs::create_dir_all(job.path("other")).map_err(|error| error.to_string())?;
    let named = ["--config".as_ref(), config.as_os_str()];
    let directory = job.cache_dir();
    let cache = ["--cache".as_ref(), directory.as_os_str()];
    for arguments in [named, cache] {
        let forgot = forget(&arguments);
        if !forgot.contains("forgot that the response to GET https://api.iaas.test/v1/leak") {
            return Err(forgot);
        }
        expect_answered(&call(&job, "fine"))?;
        call(&job, "leak");
        expect(&call(&job, "fine"), REFUSED)?;
    }
    Ok(())
}

fn latches_after_a_result(world: &World) -> Result<(), String> {
    let job = job(world, json!({}))?;
    let result = json!([{"op": "result", "json": "disk-cAnArY7secret-property"}]);
    let leak = job.script(result).run();
    expect(&leak, &["the result was withheld, because it holds the credential `password`", "`drop`"])?;
    expect(&call(&job, "fine"), &["policy: the result held the credential `password`", "[leak-latched]"])
}

fn only_ends(world: &World) -> Result<(), String> {
    let job = job(world, json!({"leaks": "end"}))?;
    expect(&call(&job, "leak"), &["held the credential `password` and was withheld"])?;
    expect_answered(&call(&job, "fine"))
}

fn other_modules_go_on(world: &World) -> Result<(), String> {
    let job = job(world, json!({}))?;
    call(&job, "leak");
    expect(&call(&job, "fine"), REFUSED)?;
    // Another job with the same guest and the same cache.
    let mut row = json!({"config": {"cache": job.cache_dir()}});
    row["config"]["hardening"] = json!("required");
    expect_answered(&call(&row::job(world, &row), "fine"))
}

/// Returns the file that remembers leaks.
fn latch_file(job: &Job) -> PathBuf {
    let entries = fs::read_dir(job.cache_dir()).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_latch = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("leaks-"));
    entries.into_iter().find(is_latch).unwrap_or_else(|| panic!("no call has created the file"))
}

fn follows_no_link(world: &World) -> Result<(), String> {
    let job = job(world, json!({}))?;
    expect_answered(&call(&job, "fine"))?;
    let (latch, theirs) = (latch_file(&job), job.path("theirs"));
    write(&theirs, b"");
    fs::remove_file(&latch).and_then(|()| symlink(&theirs, &latch)).map_err(|error| error.to_string())?;
    expect(&call(&job, "leak"), &["config: ", "[latch-trust]"])?;
    if fs::read(&theirs).is_ok_and(|bytes| bytes.is_empty()) { Ok(()) } else { Err("the link was followed".into()) }
}

fn trusts_no_other_user(world: &World) -> Result<(), String> {
    let job = job(world, json!({}))?;
    expect_answered(&call(&job, "fine"))?;
    set_mode(&latch_file(&job), 0o666);
    expect(&call(&job, "fine"), &["is writable by group or others", "[latch-trust]"])
}

/// Another user could have written the leak, so that the guest is refused.
fn trusts_no_writable_directory(world: &World) -> Result<(), String> {
    let job = job(world, json!({}))?;
    expect_answered(&call(&job, "fine"))?;
    write(&latch_file(&job), b"a leak\n");
    set_mode(&job.cache_dir(), 0o777);
    expect_answered(&call(&job, "fine"))
}
