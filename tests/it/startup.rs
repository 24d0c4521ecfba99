//! The cost of a call without network, in instructions: the count does not depend on the
//! load of the machine. The bounds are generous. A call exceeds them if every call does
//! something new, for example if it builds a compiler, a client or a table in advance.

use serde_json::json;
use std::fs::File;
use std::process::{Command, Stdio};
use tests::{Job, cloud};

/// The current counts with a margin: twice the count of `info`, and a quarter more for `create_vm`.
const INFO: u64 = 500_000;
const CREATE_VM: u64 = 5_000_000;
/// With 20 KB of private keys among the secrets, whose lines are searched for in the result.
const CREATE_VM_WITH_KEYS: u64 = 25_000_000;

#[test]
fn a_call_stays_within_its_bound_of_instructions() {
    // Lock-down would restrict valgrind as well.
    let job = Job::default().configure(|config| config["hardening"] = json!("off"));
    let agent = "6d6c1e5e-5f04-4a1c-8d0f-1f6b8e1d9c3a";
    let vm = json!([agent, "stemcell-1", {}, cloud::networks(), [], cloud::env()]);
    for (method, arguments, bound) in [("info", json!([]), INFO), ("create_vm", vm, CREATE_VM)] {
        let count = count_instructions(&job, method, &arguments);
        assert!(count < bound, "{method} takes {count} instructions, more than the bound of {bound}");
        // A failed count, or a bound that is far too high, would detect nothing.
        assert!(count > bound / 10, "{method} takes {count} instructions: lower its bound of {bound}");
    }
}

#[test]
fn large_keys_among_the_secrets_are_affordable() {
    let line = |number: u32| tests::dist::sha256(&number.to_be_bytes());
    let key = |first: u32| {
        let lines: Vec<String> = (first..first + 50).map(line).collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
    };
    let keys: Vec<String> = (0..6).map(|number| key(100 * number)).collect();
    assert!(keys.concat().len() > 19_000);
    let job = Job::default().properties(json!({"keys": keys})).configure(|config| config["hardening"] = json!("off"));
    let vm = json!(["an-agent", "stemcell-1", {}, cloud::networks(), [], cloud::env()]);
    let count = count_instructions(&job, "create_vm", &vm);
    assert!(count < CREATE_VM_WITH_KEYS, "{count} instructions, more than the bound of {CREATE_VM_WITH_KEYS}");
}

fn count_instructions(job: &Job, method: &str, arguments: &serde_json::Value) -> u64 {
    let request = job.path(&format!("{method}.json"));
    let context = json!({"director_uuid": "a-director", "vm": {"stemcell": {"api_version": 3}}});
    let text = json!({"method": method, "arguments": arguments, "context": context, "api_version": 2});
    tests::job::write(&request, text.to_string().as_bytes());
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(job.program())
        .arg("--config")
        .arg(job.config_file())
        .stdin(File::open(&request).unwrap_or_else(|error| panic!("{}: {error}", request.display())))
        .stdout(Stdio::piped())
        .output()
        .unwrap_or_else(|error| panic!("cannot run valgrind, which `cargo xtask test` installs: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains(r#""error":null"#), "{method}: {stdout}\n{stderr}");
    let collected = stderr.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
    collected.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count in {stderr}"))
}
