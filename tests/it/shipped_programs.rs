//! Shipped programs have no switch that disables a check.

use serde_json::json;
use std::process::Command;
use tests::{CPI_ERROR, Job, dist, process};

#[test]
fn shipped_programs_do_not_contain_the_name_of_the_mutation_variable() {
    for program in [dist::hot(), dist::tool()] {
        let bytes = std::fs::read(&program).unwrap();
        assert!(!process::contains(&bytes, b"WASM_CPI_MUTANT"), "{}", program.display());
    }
}

#[test]
fn shipped_programs_ignore_the_mutation_variable() {
    let job = Job::default();
    for (check, request) in [
        ("json-duplicate-key", r#"{"method":"info","method":"info","arguments":[]}"#.to_owned()),
        ("limit-request_mib", format!(r#"{{"method":"info","arguments":[]{}}}"#, " ".repeat(17 << 20))),
    ] {
        job.raw(request).env("WASM_CPI_MUTANT", check).run().fails(CPI_ERROR, &["request: "]);
    }
    let output = Command::new(dist::tool()).arg("mutants").output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(job.call("has_vm", json!(["vm-1"])).run().result(), &json!(true));
}
