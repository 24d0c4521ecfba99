//! The advice in messages to operators, where following it must help.

use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use tests::cloud::{self, get, with_policy};
use tests::job::{set_mode, write};
use tests::process::{GUARD, run};
use tests::servers::{Answer, Identity, Server, with};
use tests::users::{NOBODY, give, is_root};
use tests::{CPI_ERROR, Job, dist};

/// The CLI deletes the job when its command ends, so `chmod` cannot help.
#[test]
fn a_writable_file_of_a_job_of_the_cli_is_a_matter_of_the_umask() {
    let job = Job::default();
    let directory = job.path(".bosh/installations/1-2/jobs/wasm_cpi/config");
    fs::create_dir_all(&directory).unwrap();
    for file in ["cpi.json", "policy.json"] {
        fs::copy(job.path("config").join(file), directory.join(file)).unwrap();
    }
    for (file, method) in [("cpi.json", "info"), ("policy.json", "has_vm")] {
        set_mode(&directory.join(file), 0o664);
        let mut call = Command::new(dist::hot());
        call.arg("--config").arg(directory.join("cpi.json")).env_clear();
        let request = json!({"method": method, "arguments": if method == "info" { json!([]) } else { json!(["vm-1"]) }, "context": {}});
        let finished = run(&mut call, request.to_string().as_bytes(), GUARD);
        let response: Value = serde_json::from_slice(&finished.stdout).unwrap();
        let message = response["error"]["message"].as_str().unwrap();
        let expected = "is writable by group or others (mode 664), because the CLI wrote it with this user's umask; run \
                        `umask 022`, and then the same `bosh` command again";
        assert!(message.contains(file) && message.contains(expected) && !message.contains("chmod"), "{message}");
        set_mode(&directory.join(file), 0o644);
    }
}

fn check(job: &Job, options: &[&str]) -> (bool, String) {
    let mut command = Command::new(dist::tool());
    command.args(["check", "--config"]).arg(job.config_file()).args(options).env_clear().current_dir("/");
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// What root may read and who owns the files in its eyes says nothing about calls.
#[test]
fn check_run_by_root_judges_as_the_user_who_runs_calls() {
    if !is_root("check as another user") {
        return;
    }
    let job = Job::default();
    let (good, printed) = check(&job, &[]);
    assert!(good && printed.contains("ok: checked as root, because no other user owns the job's data"), "{printed}");
    // As for any job, its user can read the directory.
    set_mode(&job.path(""), 0o755);
    give(&job.path("config"), NOBODY);
    let (good, printed) = check(&job, &[]);
    let owner = format!("ok: checked as user nobody ({NOBODY}), who owns {}", job.config_file().display());
    assert!(good && printed.contains(&owner) && printed.contains("`--user` names another one"), "{printed}");
    // A file that only root can read is a problem of that user.
    give(&job.policy_file(), 0);
    let (good, printed) = check(&job, &["--user", "nobody"]);
    assert!(!good && printed.contains("policy.json: cannot be read"), "{printed}");
    assert!(printed.contains(&format!("checked as user nobody ({NOBODY}), as `--user` says")), "{printed}");
    let (good, printed) = check(&job, &["--user", "no-such-user"]);
    assert!(!good && printed.contains("/etc/passwd has no such user"), "{printed}");
}

#[test]
fn a_preset_may_be_readable_and_a_policy_is_a_warning() {
    let job = Job::default().policy(json!({"version": 1, "presets": [{"file": "preset.json"}]}));
    write(&job.path("config/preset.json"), br#"{"version":1,"http":[]}"#);
    set_mode(&job.path("config/preset.json"), 0o644);
    let (good, printed) = job.check();
    assert!(good && !printed.contains("readable by every user"), "{printed}");
    set_mode(&job.policy_file(), 0o644);
    let (good, printed) = job.check();
    assert!(good && printed.contains("policy.json is readable by every user"), "{printed}");
}

fn login_job(login: Value) -> (Job, Server) {
    let api = Server::answering(Answer::ok("in"));
    let grant = with(api.grant("api"), json!({"auth": {"login": "main"}, "plain_http": true}));
    let basic = json!({"path": "/v3/tokens", "addresses": ["127.0.0.0/8"], "plain_http": true, "body": {"p": "${password}"},
        "token": "header:X-Subject-Token", "send": {"header": "X-Auth-Token"}});
    let job = with_policy(json!({"logins": {"main": with(basic, login)}, "http": [grant]}));
    (job.properties(json!({"password": "hunter2hunter2"})), api)
}

/// The guest sees the kind of the failure only. The caller's error says what to look at.
#[test]
fn the_error_of_a_call_names_the_cause_of_a_failed_login() {
    let refusing = Server::answering(Answer::new(401, "who?"));
    let unknown = Identity::self_signed(&["127.0.0.1"]).server(None);
    let untrusted = Server::tls(unknown, |_| Answer::ok("unreachable"));
    for (login, said) in [
        (json!({"to": refusing.origin()}), &["HTTP 401"][..]),
        (json!({"to": "http://127.0.0.1:1"}), &["127.0.0.1:1", "refused"]),
        (json!({"to": "http://nowhere.invalid"}), &["nowhere.invalid"]),
        (json!({"to": untrusted.origin(), "plain_http": false}), &["TLS failed: no trusted authority"]),
    ] {
        let (job, api) = login_job(login);
        let response = cloud::call(&job, &json!([get(&api.url("/a"))]));
        let outcomes = tests::probe::outcomes_in(response.message());
        let (_, appended) = response.message().rsplit_once("]").unwrap();
        for said in said.iter().chain(&["; the last request that failed: ", "login `main`"]) {
            assert!(appended.contains(said), "no `{said}` in `{appended}`");
        }
        assert!(!response.message().contains("hunter2"), "{}", response.message());
        assert!(!outcomes[0].to_string().contains("nowhere.invalid"), "{outcomes:?}");
    }
}

#[test]
fn a_header_of_a_login_that_cannot_be_sent_is_a_problem_of_the_policy() {
    let (job, _api) = login_job(json!({"to": "http://127.0.0.1:1", "headers": {"X-Scope": "a\nb"}}));
    let expected = "the policy's text cannot be sent in `headers` of the login `main`";
    cloud::call(&job, &json!([])).fails(CPI_ERROR, &["config: ", expected]);
    let (good, printed) = job.check();
    assert!(!good && printed.contains(expected), "{printed}");
}
