//! Guests that misbehave while they are prepared, when their `describe` runs
//! for the first and only time.

use serde_json::json;
use std::collections::BTreeSet;
use tests::{CLOUD_ERROR, CPI_ERROR, Job, Response, hostile};

fn info(guest: &[u8]) -> (Job, Response) {
    let job = Job::new().guest_bytes(guest);
    let response = job.call("info", json!([])).run();
    (job, response)
}

#[test]
fn a_guest_that_does_not_say_who_it_is_is_not_prepared() {
    for (name, said) in [
        ("describe-traps", "wasm `unreachable` instruction executed"),
        ("describe-grows", "`memory_mib` (256)"),
        ("describe-recurses", "`stack_kib` (1024)"),
    ] {
        let (job, response) = info(&hostile::guest(name));
        response.fails(CLOUD_ERROR, &["guest.wasm: `describe` failed: ", said]);
        assert!(job.cached("").is_empty(), "{name} was stored");
    }
}

#[test]
fn a_guest_that_is_prepared_reaches_nobody() {
    let (_, response) = info(&hostile::guest("describe-calls-the-host"));
    assert_eq!(response.result()["stemcell_formats"], json!(["hostile-raw"]));
    assert_eq!(response.stderr, "");
}

#[test]
fn functions_of_a_describe_that_trapped_are_named() {
    let (_, response) = info(&hostile::guest("describe-traps"));
    assert!(response.log().contains("whoami"), "{}", response.log());
}

#[test]
fn a_describe_without_an_end_is_stopped() {
    let (job, response) = info(&hostile::guest("describe-loops"));
    response.fails(CLOUD_ERROR, &["guest.wasm: `describe` failed: "]);
    assert!(job.cached("").is_empty());
}

#[test]
fn code_that_runs_before_describe_is_stopped_as_well() {
    let (_, response) = info(&hostile::guest("start-loops"));
    response.fails(CLOUD_ERROR, &["guest.wasm: `describe` failed: "]);
}

#[test]
fn descriptions_are_plain_text_of_the_contract() {
    let long = "x".repeat(65);
    let many: Vec<&str> = vec!["f"; 101];
    for (name, version, formats, methods, said) in [
        ("", "1", &["f"][..], &["has_vm"][..], "a name that does not match [a-z0-9-]{1,64}"),
        ("Upper", "1", &["f"], &[], "a name that does not match"),
        ("wasm-cpi", "1", &["f"], &[], "the name `wasm-cpi`, which is the runtime's in logs"),
        ("two words", "1", &["f"], &[], "a name that does not match"),
        ("a\nb", "1", &["f"], &[], "a name that does not match"),
        (long.as_str(), "1", &["f"], &[], "a name that does not match"),
        ("n", "", &["f"], &[], "a version that is not 1 to 64 printable ASCII characters"),
        ("n", "1\u{1b}[2J", &["f"], &[], "a version that is not"),
        ("n", "1", &["\u{202e}"], &[], "stemcell formats that are not short printable ASCII"),
        ("n", "1", &[""], &[], "stemcell formats that are not"),
        ("n", "1", many.as_slice(), &[], "stemcell formats that are not"),
        ("n", "1", &["f"], &["has_vm", "fly"], "lists the method \"fly\", which the contract does not have"),
        ("n", "1", &["f"], &["ping"], "lists the method \"ping\""),
    ] {
        let (job, response) = info(&hostile::describing(name, version, formats, methods));
        response.fails(CLOUD_ERROR, &["guest.wasm: `describe` ", said]);
        assert!(job.cached("").is_empty());
    }
}

#[test]
fn what_a_plain_guest_says_is_what_info_answers() {
    let (job, response) = info(&hostile::describing("n-1", "0.1", &["a-raw", "b-raw"], &[]));
    assert_eq!(response.result()["stemcell_formats"], json!(["a-raw", "b-raw"]));
    assert_eq!(job.cached(".json").len(), 1);
    job.call("has_vm", json!(["vm-1"])).run().fails(tests::NOT_IMPLEMENTED, &["n-1 0.1 does not implement has_vm"]);
}

#[test]
fn a_guest_that_fits_no_world_is_refused() {
    let (_, response) = info(&hostile::guest("another-world"));
    response.fails(CPI_ERROR, &["guest.wasm: the module does not fit the world bosh:cpi"]);
}

/// A file that no test compiles protects nobody.
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

/// The text of all files below a directory.
fn collect(directory: &std::path::Path, texts: &mut Vec<String>) {
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => collect(&path, texts),
            false => texts.push(std::fs::read_to_string(&path).unwrap()),
        }
    }
}
