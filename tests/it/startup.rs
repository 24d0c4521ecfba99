//! What a call costs before any cloud is asked, in instructions: a count that does
//! not depend on what else the machine does. The bounds are generous; what breaks
//! them is something new on the way of every call, like a compiler, a client or a
//! table that is built before anybody asked for it.

use serde_json::json;
use std::collections::HashSet;
use std::fs::File;
use std::process::{Command, Stdio};
use tests::{Job, cloud, dist, elf};

/// What is counted today, and as much again, or a fourth of it.
const INFO: u64 = 500_000;
const CREATE_VM: u64 = 3_000_000;

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

/// Else every call pays for pages that it hardly uses. Their names are a compiler's
/// own: for another one the list has no say.
#[test]
#[expect(clippy::print_stderr, reason = "a test that checks nothing says why")]
fn what_calls_run_lies_side_by_side() {
    let order = std::fs::read_to_string(dist::root().join("runtime/hot.order")).unwrap();
    let (made_by, names) = order.split_once('\n').unwrap_or_default();
    if made_by != format!("# {}", elf::compiler()) || !cfg!(target_arch = "x86_64") {
        return eprintln!("not checked: runtime/hot.order is by {made_by}; run `cargo xtask bench --order`");
    }
    let symbols = elf::symbols(&dist::hot());
    let (there, gone): (Vec<&str>, Vec<&str>) = names.lines().partition(|name| symbols.contains_key(*name));
    let (there, gone) = (there.iter().map(|name| symbols[*name]), gone.len());
    assert!(there.len() > 9 * gone, "{gone} functions are gone: run `cargo xtask bench --order`");
    // What the kernel maps at once when one of its pages is touched.
    let stretches: HashSet<u64> = there.clone().map(|address| address >> 16).collect();
    assert!(stretches.len() < 60, "{} functions in {} stretches of 64 KiB", there.len(), stretches.len());
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
