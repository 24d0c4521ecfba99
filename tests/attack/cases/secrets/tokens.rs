//! Tokens that calls keep for later ones: who can use them, and how often a call logs in.

use crate::case::Case;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tests::job::set_mode;
use tests::{Job, probe};

const CLASS: &str = "secrets";
/// The server of the login, and that of the requests with its token.
const SERVERS: &[&str] = &["dns", "api:443", "5.6.7.20:443"];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, mutants: &[&str], attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, mutants, attempt).may_contact(SERVERS)
    };
    vec![
        case("a token is used by later calls of the same guest, job and password", &[], is_kept),
        case("without `keep_tokens` every call logs in", &[], is_not_kept),
        case("a damaged token", &["token-record"], is_authenticated),
        case("a token in a file that others can read", &["token-trust"], trusts_no_readable_file),
        case("a link in place of a token's file", &["token-trust"], follows_no_link),
        case("a server that refuses every token", &["login-renewal"], renews_once),
        case("a server that refuses every login", &["login-failures"], stops_after_failures),
    ]
}

fn login_server() -> Value {
    json!({"status": 201, "body": "{\"expires_in\": 3600}", "headers": {"X-Subject-Token": "cAnArY7secret-token", "Content-Type": "application/json"}})
}

/// Returns a job with a login and the strictest lock-down.
fn job(world: &World, served: Value, config: Value) -> Result<Job, String> {
    let login = json!({
        "to": "https://id.iaas.test", "path": "/tokens", "body": {"password": "${password}"},
        "token": "header:X-Subject-Token", "expires": {"in_seconds": "json:/expires_in"}, "send": {"header": "X-Auth-Token"},
    });
    let mut row = json!({
        "policy": {"logins": {"main": login}}, "grant": {"auth": {"login": "main"}},
        "config": {"cache": "../cache", "hardening": "required", "properties": {"password": "cAnArY7secret-password"}},
    });
    tests::rows::merge_patch(&mut row["config"], &config);
    world.reset(row::names(&json!({"id.iaas.test": ["5.6.7.20"]})), Served::new(&served))?;
    let job = row::job(world, &row);
    // The cache is the job's own, so it has to be filled first.
    job.call("info", json!([])).run().result();
    Ok(job)
}

/// Makes a call with this number of requests.
fn call(job: &Job, requests: usize) -> String {
    let script: Vec<Value> =
        (0..requests).map(|_| json!({"op": "http", "url": "https://api.iaas.test/v1/x"})).collect();
    job.call("has_vm", json!([probe::cid(&Value::Array(script))])).run().json.to_string()
}

fn logins(world: &World) -> usize {
    world.requests().iter().filter(|arrived| arrived.host == "id.iaas.test").count()
}

fn expect_logins(world: &World, expected: usize) -> Result<(), String> {
    // A token that was changed on disk must not be sent.
    let sent = world.requests();
    let wrong = sent.iter().filter_map(|arrived| arrived.request.header("x-auth-token"));
    match wrong.filter(|token| *token != "cAnArY7secret-token").count() {
        0 if logins(world) == expected => Ok(()),
        0 => Err(format!("{} logins, not {expected}", logins(world))),
        _ => Err("a token was sent that no server made".to_owned()),
    }
}

/// Returns the file of the only kept token.
fn token_file(job: &Job) -> Result<PathBuf, String> {
    let all = fs::read_dir(job.cache_dir()).map_err(|error| error.to_string())?;
    let paths = all.flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("token-"));
    paths.into_iter().find(name).ok_or_else(|| "no token is kept".to_owned())
}

fn kept(world: &World) -> Result<Job, String> {
    let job = job(world, json!({"id.iaas.test": login_server()}), json!({}))?;
    call(&job, 2);
    expect_logins(world, 1)?;
    Ok(job)
}

fn is_kept(world: &World) -> Result<(), String> {
    let job = kept(world)?;
    for _ in 0..5 {
        call(&job, 1);
    }
    expect_logins(world, 1)?;
    job.call("has_vm", json!([probe::cid(&json!([{"op": "http", "url": "https://api.iaas.test/v1/x"}]))]))
        .context("password", json!("cAnArY7secret-of-a-context"))
        .run();
    expect_logins(world, 2)?;
    call(&job, 1);
    expect_logins(world, 2)
}

fn is_not_kept(world: &World) -> Result<(), String> {
    let job = job(world, json!({"id.iaas.test": login_server()}), json!({"keep_tokens": false}))?;
    call(&job, 2);
    call(&job, 2);
    expect_logins(world, 2)?;
    if token_file(&job).is_ok() { Err("a token was kept".to_owned()) } else { Ok(()) }
}

fn is_authenticated(world: &World) -> Result<(), String> {
    let job = kept(world)?;
    let path = token_file(&job)?;
    let mut bytes = fs::read(&path).map_err(|error| error.to_string())?;
    let place = bytes.windows(6).position(|six| six == b"secret").ok_or("the file holds no token")?;
    bytes[place] = b'S';
    fs::write(&path, &bytes).map_err(|error| error.to_string())?;
    call(&job, 1);
    expect_logins(world, 2)
}

fn trusts_no_readable_file(world: &World) -> Result<(), String> {
    let job = kept(world)?;
    set_mode(&token_file(&job)?, 0o644);
    call(&job, 1);
    expect_logins(world, 2)
}

fn follows_no_link(world: &World) -> Result<(), String> {
    let job = kept(world)?;
    let (path, elsewhere) = (token_file(&job)?, job.path("elsewhere"));
    fs::rename(&path, &elsewhere).and_then(|()| symlink(&elsewhere, &path)).map_err(|error| error.to_string())?;
    call(&job, 1);
    expect_logins(world, 2)
}

fn renews_once(world: &World) -> Result<(), String> {
    let job = job(world, json!({"id.iaas.test": login_server(), "api.iaas.test": {"status": 401}}), json!({}))?;
    call(&job, 1);
    expect_logins(world, 2)?;
    for _ in 0..3 {
        call(&job, 1);
    }
    expect_logins(world, 2)
}

fn stops_after_failures(world: &World) -> Result<(), String> {
    let job = job(world, json!({"id.iaas.test": {"status": 503}}), json!({}))?;
    call(&job, 6);
    expect_logins(world, 3)
}
