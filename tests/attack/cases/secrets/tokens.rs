//! Tokens that calls keep for later ones: who can use them, and how often a call logs in.

use super::endings::expect_no_leak;
use super::scenario::{Scenario, Search};
use crate::case::Case;
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tests::job::set_mode;
use tests::users::{NOBODY, give, is_root};
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
        case("a hard link to a token's file", &["token-trust"], accepts_no_second_name),
        case("a token that another user owns", &["token-trust"], accepts_no_file_of_others),
        case("a key that others can read", &["token-trust"], accepts_no_readable_key),
        case("a token in a directory that others can write", &["cache-directory"], trusts_no_writable_directory),
        case("a token that a server returns in a later call", &["tripwire"], is_found_by_the_tripwire),
        case("a token that a server returns in a call that does not use its login", &["token-known"], is_known_unused),
        Case::new(CLASS, "secrets in every field, in calls with kept tokens", &[], hides_all_secrets)
            .may_contact(super::scenario::SERVERS),
    ]
}

fn login_server() -> Value {
    json!({"status": 201, "body": "{\"expires_in\": 3600}", "headers": {"X-Subject-Token": "cAnArY7secret-token", "Content-Type": "application/json"}})
}

/// Returns a job with a login for `/v1`, none for `/open`, and the strictest lock-down.
fn job(world: &World, served: Value, config: Value) -> Result<Job, String> {
    let login = json!({
        "to": "https://id.iaas.test", "path": "/tokens", "body": {"password": "${password}"},
        "token": "header:X-Subject-Token", "expires": {"in_seconds": "json:/expires_in"}, "send": {"header": "X-Auth-Token"},
    });
    let grant =
        |id: &str, path: &str| json!({"id": id, "to": "https://api.iaas.test", "methods": ["GET"], "paths": [path]});
    let (mut with_login, open) = (grant("api", "/v1/**"), grant("open", "/open/**"));
    with_login["auth"] = json!({"login": "main"});
    let mut row = json!({
        "policy": {"logins": {"main": login}}, "grants": [with_login, open],
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

fn accepts_no_second_name(world: &World) -> Result<(), String> {
    let job = kept(world)?;
    fs::hard_link(token_file(&job)?, job.path("second-name")).map_err(|error| error.to_string())?;
    call(&job, 1);
    expect_logins(world, 2)
}

fn accepts_no_file_of_others(world: &World) -> Result<(), String> {
    if !is_root("files of other users") {
        return Ok(());
    }
    let job = kept(world)?;
    give(&token_file(&job)?, NOBODY);
    call(&job, 1);
    expect_logins(world, 2)
}

fn accepts_no_readable_key(world: &World) -> Result<(), String> {
    let job = kept(world)?;
    set_mode(&job.cache_dir().join("tokens.key"), 0o644);
    call(&job, 1);
    expect_logins(world, 2)
}

fn trusts_no_writable_directory(world: &World) -> Result<(), String> {
    let job = kept(world)?;
    set_mode(&job.cache_dir(), 0o777);
    call(&job, 1);
    expect_logins(world, 2)
}

/// The call has not received the token itself, and nevertheless knows that it is a secret.
fn is_found_by_the_tripwire(world: &World) -> Result<(), String> {
    let echo = json!([{"status": 200, "body": "{}"}, {"status": 200, "body": "{}"}, {"echo": true}]);
    let job = job(world, json!({"id.iaas.test": login_server(), "api.iaas.test": echo}), json!({}))?;
    call(&job, 2);
    let message = call(&job, 1);
    expect_logins(world, 1)?;
    if message.contains("held the credential `token of login main`") { Ok(()) } else { Err(message) }
}

/// A grant without the login reaches a log that shows the token of an earlier call.
fn is_known_unused(world: &World) -> Result<(), String> {
    let log = json!({"body": "the last client sent cAnArY7secret-token"});
    let job = job(world, json!({"id.iaas.test": login_server(), "api.iaas.test/open/log": log}), json!({}))?;
    call(&job, 1);
    let script = json!([{"op": "http", "url": "https://api.iaas.test/open/log"}]);
    let message = job.call("has_vm", json!([probe::cid(&script)])).run().json.to_string();
    expect_logins(world, 1)?;
    if message.contains("held the credential `token of login main`") { Ok(()) } else { Err(message) }
}

/// Uses everything in several calls, of which all but the first use kept tokens.
fn hides_all_secrets(world: &World) -> Result<(), String> {
    let mut scenario = Scenario::new(world, 2);
    scenario.search = Search::All;
    scenario.set_up(world)?;
    let mut operations = scenario.use_everything();
    operations.push(json!({"op": "result", "json": "vm-2"}));
    for number in 0..3 {
        let response = scenario.create_vm(&operations).run();
        if !response.json["error"].is_null() {
            return Err(format!("call {number}: {}", response.json));
        }
        expect_no_leak(&scenario, &response)?;
        scenario.check_logged_results(&response.stderr)?;
        scenario.received_secrets(world)?;
    }
    for host in ["id.iaas.test", "oauth.iaas.test"] {
        let logins = world.requests().iter().filter(|arrived| arrived.host == host).count();
        if logins != 1 {
            return Err(format!("{logins} logins at {host}"));
        }
    }
    Ok(())
}
