//! Tokens that a call keeps for later ones: who uses them, for how long, and what removes them.

mod commands;
mod disks;
mod files;
mod parallel;
mod validity;

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tests::cloud::{answered, call, get, with_policy};
use tests::job::write;
use tests::process::{GUARD, run};
use tests::servers::{Answer, Authority, ReceivedRequest, Server, Validity, with};
use tests::{CPI_ERROR, Call, Job, Response, audit, dist, probe};

const PASSWORD: &str = "correct horse battery staple";
/// The beginning of all tokens.
const TOKEN: &str = "token-of-the-identity-service-";

/// A token service whose tokens end with `-1`, `-2` and so on, and an API that accepts all of them.
struct Cloud {
    identity: Server,
    api: Server,
}

impl Cloud {
    /// Starts servers whose tokens expire after this number of seconds.
    fn new(lifetime: Value) -> Cloud {
        Cloud { identity: Server::start(issue_tokens(lifetime)), api: Server::answering(Answer::ok("in")) }
    }

    fn logins(&self) -> usize {
        self.identity.requests().len()
    }

    /// Returns the policy of a job with a login at the service and a grant for the API.
    fn policy(&self) -> Value {
        let login = json!({
            "to": self.identity.origin(), "path": "/v3/tokens", "addresses": ["127.0.0.0/8"], "plain_http": true,
            "body": {"name": "${user}", "password": "${password}"}, "headers": {"X-Realm": "here"},
            "token": "header:X-Subject-Token", "expires": {"in_seconds": "json:/expires"},
            "send": {"header": "X-Auth-Token"}, "show": {"catalog": "json:/catalog"},
        });
        let grant = with(self.api.grant("api"), json!({"auth": {"login": "main"}, "plain_http": true}));
        json!({"version": 1, "logins": {"main": login}, "http": [grant]})
    }

    /// Returns a job with a cache of its own.
    fn job(&self) -> Job {
        let job = with_policy(self.policy()).properties(json!({"user": "admin", "password": PASSWORD}));
        job.own_cache().configure(|config| config["log"] = json!({"level": "debug"}))
    }

    /// Returns a job for which a call has kept a token.
    fn job_with_token(&self) -> Job {
        let job = self.job();
        self.send(&job);
        assert_eq!(self.logins(), 1);
        job
    }

    /// Returns a call that sends a request with the token.
    fn call<'a>(&self, job: &'a Job) -> Call<'a> {
        job.call("has_vm", json!([probe::cid(&json!([get(&self.api.url("/"))]))]))
    }

    /// Makes a call that sends a request with the token, which must be answered.
    #[track_caller]
    fn send(&self, job: &Job) -> Response {
        let response = self.call(job).run();
        answered(&probe::outcomes_in(response.message())[0], 200);
        response
    }

    /// Checks how many logins a number of calls makes.
    #[track_caller]
    fn check_logins(&self, job: &Job, calls: usize, expected: usize, what: &str) {
        let before = self.logins();
        (0..calls).for_each(|_| drop(self.send(job)));
        assert_eq!(self.logins() - before, expected, "{what}");
    }
}

/// Answers logins with new tokens.
fn issue_tokens(lifetime: Value) -> impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |_| {
        let token = format!("{TOKEN}{}", count.fetch_add(1, Ordering::SeqCst) + 1);
        let body = json!({"expires": lifetime, "catalog": [{"url": "https://cloud.test"}]});
        Answer::json(201, &body).header("X-Subject-Token", &token)
    }
}

/// Returns the files of tokens in a job's cache.
fn token_files(job: &Job) -> Vec<PathBuf> {
    let all = fs::read_dir(job.cache_dir()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = all.filter(|path| name_of(path).starts_with("token-")).collect();
    found.sort();
    found
}

/// Returns the only file of a token.
#[track_caller]
fn token_file(job: &Job) -> PathBuf {
    let mut found = token_files(job);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn key_file(job: &Job) -> PathBuf {
    job.cache_dir().join("tokens.key")
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Returns a record as a call of now writes it, with these keys replaced.
fn record(keys: Value) -> Value {
    with(
        json!({"token": "a-forged-token", "shown": "{}", "made": now(), "expires": now() + 3600, "refused": null}),
        keys,
    )
}

/// Writes a record into the job's only file, authenticated with the job's key.
fn forge(job: &Job, record: &Value) {
    forge_at(&token_file(job), &key_file(job), record);
}

fn forge_at(file: &Path, key: &Path, record: &Value) {
    let text = record.to_string();
    let mut hash = blake3::Hasher::new_keyed(&fs::read(key).unwrap().try_into().unwrap());
    hash.update(name_of(file).as_bytes()).update(b"\0").update(text.as_bytes());
    let length = u64::try_from(text.len()).unwrap().to_le_bytes();
    write(file, &[hash.finalize().as_bytes().as_slice(), &length, text.as_bytes()].concat());
}

/// Returns the tokens that the API received.
fn received(api: &Server) -> Vec<String> {
    api.requests().iter().map(|seen| seen.header("x-auth-token").unwrap_or_default().to_owned()).collect()
}

#[test]
fn later_calls_use_the_token_of_the_first_one() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job();
    cloud.check_logins(&job, 5, 1, "five calls");
    assert_eq!(received(&cloud.api), vec![format!("{TOKEN}1"); 5]);
    // What the login shows is kept, too.
    let shown = call(&job, &json!([{"op": "session", "name": "main"}]));
    assert_eq!(probe::outcomes_in(shown.message())[0]["ok"], json!({"catalog": [{"url": "https://cloud.test"}]}));
    let job = job.configure(|config| config["keep_tokens"] = json!(false));
    cloud.check_logins(&job, 2, 2, "`keep_tokens` is false");
}

#[test]
fn the_name_of_a_file_tells_nothing_without_the_key() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    let first = name_of(&token_file(&job));
    let digits = first.strip_prefix("token-").unwrap();
    assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    cloud.send(&job);
    assert_eq!(name_of(&token_file(&job)), first);
    // Nothing else has changed, so nobody can compute the name from a guess of the password.
    fs::remove_file(token_file(&job)).unwrap();
    fs::remove_file(key_file(&job)).unwrap();
    cloud.check_logins(&job, 1, 1, "another key");
    assert_ne!(name_of(&token_file(&job)), first);
}

#[test]
fn whatever_a_token_depends_on_makes_a_login_of_its_own() {
    let cloud = Cloud::new(json!(3600));
    let mut job = cloud.job_with_token();
    for (key, value) in [
        ("path", json!("/v2/tokens")),
        ("body", json!({"name": "${user}", "password": "${password}", "scope": "all"})),
        ("headers", json!({"X-Realm": "there"})),
        ("headers", json!({"X-Realm": "here", "X-More": "more"})),
        ("show", json!({"expires": "json:/expires"})),
        ("send", json!({"header": "X-Auth-Token", "prefix": "Bearer "})),
        ("addresses", json!(["127.0.0.1/32"])),
    ] {
        let mut policy = cloud.policy();
        policy["logins"]["main"][key] = value.clone();
        job = job.policy(policy);
        cloud.check_logins(&job, 2, 1, &format!("{key}: {value}"));
    }
    let other_service = Server::start(issue_tokens(json!(3600)));
    let mut policy = cloud.policy();
    policy["logins"]["main"]["to"] = json!(other_service.origin());
    job = job.policy(policy);
    cloud.check_logins(&job, 2, 0, "another service");
    assert_eq!(other_service.requests().len(), 1);
    job = job.policy(cloud.policy());
    cloud.check_logins(&job, 1, 0, "the first policy again");
    // Loopback addresses are reached without the proxy.
    job =
        job.configure(|config| config["proxy"] = json!({"http": "http://127.0.0.1:1", "https": "http://127.0.0.1:1"}));
    cloud.check_logins(&job, 2, 1, "a proxy");
    job = job.properties(json!({"user": "admin", "password": "another password"}));
    cloud.check_logins(&job, 2, 1, "another password");
}

#[test]
fn a_context_with_other_credentials_uses_another_token() {
    let cloud = Cloud::new(json!(3600));
    let job = cloud.job_with_token();
    for (key, value, expected) in [
        ("password", "of a context", 1),
        ("password", "of another context", 1),
        ("password", "of a context", 0),
        ("user", "other", 1),
        ("user", "other", 0),
        ("password", PASSWORD, 0),
        ("unused", "x", 0),
    ] {
        let before = cloud.logins();
        let response = cloud.call(&job).context(key, json!(value)).run();
        answered(&probe::outcomes_in(response.message())[0], 200);
        assert_eq!(cloud.logins() - before, expected, "{key}: {value}");
    }
    cloud.check_logins(&job, 1, 0, "without a context");
}

#[test]
fn other_certificates_make_a_login_of_their_own() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = authority.issue(&["127.0.0.1"], Validity::Now);
    let identity = Server::tls(server.server(None), issue_tokens(json!(3600)));
    let cloud = Cloud { identity, api: Server::answering(Answer::ok("in")) };
    let client = authority.issue(&["client"], Validity::Now);
    let both = format!("{}{}", authority.pem(), other.pem());
    let mut job = cloud.job();
    for (tls, expected) in [
        (json!({"ca": authority.pem()}), 1),
        (json!({"ca": both}), 1),
        (json!({"ca": authority.pem(), "client": {"cert": "${cert}", "key": "${key}"}}), 1),
        (json!({"ca": authority.pem()}), 0),
    ] {
        let mut policy = cloud.policy();
        let login = policy["logins"]["main"].as_object_mut().unwrap();
        login.remove("plain_http");
        login.insert("tls".to_owned(), tls);
        let properties = json!({"user": "admin", "password": PASSWORD, "cert": client.certificate, "key": client.key});
        job = job.policy(policy).properties(properties);
        cloud.check_logins(&job, 2, expected, "certificates");
    }
}

#[test]
fn other_guests_jobs_and_modules_use_tokens_of_their_own() {
    let cloud = Cloud::new(json!(3600));
    let mut job = cloud.job_with_token();
    // The same files under another path are another job.
    let elsewhere = job.path("config/other.json");
    fs::copy(job.config_file(), &elsewhere).unwrap();
    let before = cloud.logins();
    for _ in 0..2 {
        let response = cloud.call(&job).config(&elsewhere).run();
        answered(&probe::outcomes_in(response.message())[0], 200);
    }
    assert_eq!(cloud.logins() - before, 1, "another job");
    // Two modules that differ in nothing but their names.
    job = job.configure(|config| {
        let module = json!({"guest": config["guest"], "properties": config["properties"], "policy": "policy.json"});
        config["modules"] = json!({"one": module, "two": module});
    });
    let before = cloud.logins();
    for (module, expected) in [("one", 1), ("two", 2), ("one", 2), ("two", 2)] {
        let call = cloud.call(&job);
        let finished = run(call.command().args(["--module", module]), call.request().as_bytes(), GUARD);
        let response: Value = serde_json::from_slice(&finished.stdout).unwrap();
        let message = response["error"]["message"].as_str().unwrap_or_default();
        answered(&probe::outcomes_in(message)[0], 200);
        assert_eq!(cloud.logins() - before, expected, "{module}");
    }
    cloud.check_logins(&job, 1, 0, "the guest outside of the modules");
    // The same code with one more section without a meaning is another guest.
    let bytes = [fs::read(dist::probe()).unwrap(), vec![0, 2, 1, b'x']].concat();
    let job = job.configure(|config| drop(config.as_object_mut().unwrap().remove("modules"))).guest_bytes(&bytes);
    cloud.check_logins(&job, 2, 1, "another guest");
}

/// The layer of a token is that of the login's credentials, whatever a file says.
#[test]
fn a_kept_token_of_the_job_is_not_sent_to_an_origin_of_the_context() {
    let (cloud, evil) = (Cloud::new(json!(3600)), Server::answering(Answer::ok("")));
    let mut policy = cloud.policy();
    policy["http"][0]["to"] = json!("${cloud_url}");
    let properties = json!({"user": "admin", "password": PASSWORD, "cloud_url": cloud.api.origin()});
    let job = cloud.job().policy(policy).properties(properties);
    cloud.check_logins(&job, 2, 1, "the origin of the job");
    let script = json!([get(&evil.url("/"))]);
    let there = || job.call("has_vm", json!([probe::cid(&script)])).context("cloud_url", json!(evil.origin()));
    for layer in [json!(null), json!("context"), json!("Context")] {
        forge(&job, &record(json!({"layer": layer, "token_layer": layer})));
        there().run().fails(CPI_ERROR, &["`http[0].auth.login`", "context"]);
    }
    // With credentials of the context alone, the context's own token is sent there.
    let own = there().context("user", json!("theirs")).context("password", json!("theirs")).run();
    answered(&probe::outcomes_in(own.message())[0], 200);
    assert_eq!(received(&evil), [format!("{TOKEN}2")]);
    assert_eq!(token_files(&job).len(), 2);
}

#[test]
fn a_kept_token_is_in_no_log_audit_line_or_memory_of_a_guest() {
    for lifetime in [json!(3600), json!(0)] {
        let cloud = Cloud::new(lifetime);
        let job = audit::audited(cloud.job()).configure(|config| config["http_trace"] = json!("bodies"));
        let backwards = |text: &str| text.chars().rev().collect::<String>();
        let key_in_hex =
            |job: &Job| fs::read(key_file(job)).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        for _ in 0..3 {
            let script = json!([
                {"op": "session", "name": "main"}, get(&cloud.api.url("/")), {"op": "config"}, {"op": "env"},
                {"op": "find", "reversed": backwards(TOKEN)}, {"op": "find", "reversed": backwards(PASSWORD)},
                {"op": "find", "reversed": backwards("catalog")},
            ]);
            let response = call(&job, &script);
            let found = probe::outcomes_in(response.message());
            answered(&found[1], 200);
            let count = |at: usize| found[at]["ok"]["count"].as_u64().unwrap();
            assert!(count(4) == 0 && count(5) == 0 && count(6) > 0, "{found:?}");
            let key: String = key_in_hex(&job);
            let audited = fs::read_to_string(audit::path(&job)).unwrap();
            for (what, text) in [("response", response.json.to_string()), ("log", response.stderr), ("audit", audited)]
            {
                for secret in [TOKEN, PASSWORD, &key, &key[..16]] {
                    assert!(!text.contains(secret), "{what}: {text}");
                }
            }
        }
    }
}
