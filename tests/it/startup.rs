//! What a call costs before any cloud is asked, in instructions: a count that does
//! not depend on what else the machine does. The bounds are generous; what breaks
//! them is something new on the way of every call, like a compiler, a client or a
//! table that is built before anybody asked for it.

use serde_json::json;
use std::fs::File;
use std::process::{Command, Stdio};
use tests::{Job, cloud};

/// What is counted today, and as much again, or a fourth of it.
const INFO: u64 = 500_000;
const CREATE_VM: u64 = 5_000_000;

#[test]
fn a_call_takes_no_more_instructions_than_it_has_to() {
    // The walls would hold the program that counts as well.
    let job = Job::default().configure(|config| config["hardening"] = json!("off"));
    let agent = "6d6c1e5e-5f04-4a1c-8d0f-1f6b8e1d9c3a";
    let vm = json!([agent, "stemcell-1", {}, cloud::networks(), [], cloud::env()]);
    for (method, arguments, bound) in [("info", json!([]), INFO), ("create_vm", vm, CREATE_VM)] {
        let count = instructions(&job, method, &arguments);
        assert!(count < bound, "{method} takes {count} instructions, and at most {bound} are expected");
        // A count of nothing would always do.
        assert!(count > bound / 10, "{method} takes {count} instructions: lower its bound of {bound}");
    }
}

fn instructions(job: &Job, method: &str, arguments: &serde_json::Value) -> u64 {
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
        .unwrap_or_else(|error| panic!("valgrind, which `cargo xtask test` installs: {error}"));
    let (answer, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(answer.contains(r#""error":null"#), "{method}: {answer}\n{told}");
    let collected = told.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim());
    collected.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count in {told}"))
}
