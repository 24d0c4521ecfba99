//! What ships has no switch that turns a check off.

use serde_json::json;
use std::process::Command;
use tests::{CPI_ERROR, Job, dist, process};

#[test]
fn no_program_knows_the_variable_that_opens_holes() {
    for program in [dist::hot(), dist::tool()] {
        let bytes = std::fs::read(&program).unwrap();
        assert!(!process::contains(&bytes, b"WASM_CPI_HOLE"), "{}", program.display());
    }
}

#[test]
fn no_program_listens_to_it() {
    let job = Job::default();
    for (check, request) in [
        ("json-duplicate-key", r#"{"method":"info","method":"info","arguments":[]}"#.to_owned()),
        ("limit-request_mib", format!(r#"{{"method":"info","arguments":[]{}}}"#, " ".repeat(17 << 20))),
    ] {
        job.raw(request).env("WASM_CPI_HOLE", check).run().fails(CPI_ERROR, &["request: "]);
    }
    let output = Command::new(dist::tool()).arg("holes").output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(job.call("has_vm", json!(["vm-1"])).run().result(), &json!(true));
}
