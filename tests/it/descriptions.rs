//! Guests that misbehave while they are prepared. That is the only time when their
//! `describe` runs.

use serde_json::json;
use std::collections::BTreeSet;
use tests::{CLOUD_ERROR, CPI_ERROR, Job, Response, hostile};

fn info(guest: &[u8]) -> (Job, Response) {
    let job = Job::new().guest_bytes(guest);
    let response = job.call("info", json!([])).run();
    (job, response)
}

#[test]
fn a_guest_whose_describe_fails_is_not_prepared() {
    for (name, expected) in [
        ("describe-traps", "wasm `unreachable` instruction executed"),
        ("describe-grows-memory", "`memory_mib` (256)"),
        ("describe-recurses", "`stack_kib` (1024)"),
    ] {
        let (job, response) = info(&hostile::guest(name));
        response.fails(CLOUD_ERROR, &["guest.wasm: ", "describe", expected]);
        assert!(job.cached("").is_empty(), "{name} was stored");
    }
}

#[test]
fn describe_can_call_the_host_without_any_effect() {
    let (_, response) = info(&hostile::guest("describe-calls-host"));
    assert_eq!(response.result()["stemcell_formats"], json!(["hostile-raw"]));
    assert_eq!(response.stderr, "");
}

#[test]
fn the_log_names_the_functions_of_a_describe_that_trapped() {
    let (_, response) = info(&hostile::guest("describe-traps"));
    assert!(response.log().contains("whoami"), "{}", response.log());
}

#[test]
fn a_describe_that_loops_forever_is_stopped() {
    let (job, response) = info(&hostile::guest("describe-loops"));
    response.fails(CLOUD_ERROR, &["guest.wasm: ", "describe"]);
    assert!(job.cached("").is_empty());
}

#[test]
fn a_start_function_that_loops_forever_is_stopped() {
    let (_, response) = info(&hostile::guest("start-loops"));
    response.fails(CLOUD_ERROR, &["guest.wasm: ", "describe"]);
}

#[test]
fn a_description_with_an_invalid_name_version_format_or_method_is_refused() {
    let long = "x".repeat(65);
    let many: Vec<&str> = vec!["f"; 101];
    for (name, version, formats, methods, expected) in [
        ("", "1", &["f"][..], &["has_vm"][..], "a name that does not match [a-z0-9-]{1,64}"),
        ("Upper", "1", &["f"], &[], "a name that does not match"),
        ("wasm-cpi", "1", &["f"], &[], "the name `wasm-cpi`, which logs use for the runtime"),
        ("two words", "1", &["f"], &[], "a name that does not match"),
        ("a\nb", "1", &["f"], &[], "a name that does not match"),
        (long.as_str(), "1", &["f"], &[], "a name that does not match"),
        ("n", "", &["f"], &[], "a version that is not 1 to 64 printable ASCII characters"),
        ("n", "1\u{1b}[2J", &["f"], &[], "a version that is not"),
        ("n", "1", &["\u{202e}"], &[], "stemcell formats that are not at most 100 short texts"),
        ("n", "1", &[""], &[], "stemcell formats that are not"),
        ("n", "1", many.as_slice(), &[], "stemcell formats that are not"),
        ("n", "1", &["f"], &["has_vm", "fly"], "lists the method \"fly\", which is not a CPI method"),
        ("n", "1", &["f"], &["ping"], "lists the method \"ping\""),
    ] {
        let (job, response) = info(&hostile::describing(name, version, formats, methods));
        response.fails(CLOUD_ERROR, &["guest.wasm: `describe` ", expected]);
        assert!(job.cached("").is_empty());
    }
}

#[test]
fn info_returns_the_formats_of_the_description() {
    let (job, response) = info(&hostile::describing("n-1", "0.1", &["a-raw", "b-raw"], &[]));
    assert_eq!(response.result()["stemcell_formats"], json!(["a-raw", "b-raw"]));
    assert_eq!(job.cached(".json").len(), 1);
    job.call("has_vm", json!(["vm-1"])).run().fails(tests::NOT_IMPLEMENTED, &["n-1 0.1 does not implement has_vm"]);
}

#[test]
fn a_guest_of_another_world_is_refused() {
    let (_, response) = info(&hostile::guest("other-world"));
    response.fails(CPI_ERROR, &["guest.wasm: the guest does not fit the world bosh:cpi"]);
}

/// A hostile guest that no test compiles would test nothing.
#[test]
fn every_hostile_guest_has_a_test() {
    let mut sources = Vec::new();
    for directory in ["tests/it", "tests/attack/cases"] {
        collect(&tests::dist::root().join(directory), &mut sources);
    }
    let files = std::fs::read_dir(hostile::directory()).unwrap().map(|entry| entry.unwrap().path());
    let names: BTreeSet<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "wat"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    for name in names {
        let quoted = format!("\"{name}\"");
        assert!(sources.iter().any(|source| source.contains(&quoted)), "no test for {name}.wat");
    }
}

/// Collects the text of all files below a directory.
fn collect(directory: &std::path::Path, texts: &mut Vec<String>) {
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => collect(&path, texts),
            false => texts.push(std::fs::read_to_string(&path).unwrap()),
        }
    }
}
