//! Invalid files of the operator: each causes a `CpiError` that names the file, the key,
//! and what to do.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use tests::hostile;
use tests::job::{make_dir, set_mode, write};
use tests::response::CANARY;
use tests::users::{NOBODY, give, is_root};
use tests::{CPI_ERROR, Job, Response, dist};

fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

fn has_vm(job: &Job) -> Response {
    job.call("has_vm", json!(["vm-1"])).run()
}

#[test]
fn the_error_names_a_missing_config() {
    let job = Job::default();
    fs::remove_file(job.config_file()).unwrap();
    info(&job).fails(CPI_ERROR, &["config: ", "config/cpi.json: cannot be read", "No such file", "check the path"]);
    let empty = job.call("info", json!([])).config("").run();
    empty.fails(CPI_ERROR, &["config: ", "cannot be read"]);
}

#[test]
fn an_unknown_method_is_reported_as_such_even_without_a_config() {
    let job = Job::default();
    fs::remove_file(job.config_file()).unwrap();
    job.call("ping", json!([])).run().fails(tests::NOT_IMPLEMENTED, &["Method is not known, got: ping"]);
}

#[test]
fn a_config_that_is_not_a_regular_file_is_refused_without_blocking() {
    let job = Job::default();
    for path in ["/", "/dev/null", "/dev/zero"] {
        let response = job.call("info", json!([])).config(path).run();
        response.fails(CPI_ERROR, &["is not a regular file"]);
    }
    let pipe = job.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let response = job.call("info", json!([])).config(&pipe).run();
    response.fails(CPI_ERROR, &["is not a regular file"]);
}

#[test]
fn the_error_names_a_config_that_this_user_may_not_read() {
    if !is_root("a file that the caller may not read") {
        return;
    }
    let job = Job::default();
    set_mode(&job.path(""), 0o755);
    let response = job.call("info", json!([])).user(NOBODY).run();
    response.fails(CPI_ERROR, &["cpi.json: cannot be read", "ermission denied", "this user may read it"]);
    give(&job.config_file(), NOBODY);
    let response = job.call("has_vm", json!(["vm-1"])).user(NOBODY).run();
    response.fails(CPI_ERROR, &["policy.json: cannot be read", "ermission denied"]);
}

#[test]
fn a_config_or_policy_that_others_can_write_is_refused() {
    for mode in [0o620, 0o602, 0o666, 0o660, 0o777] {
        let job = Job::default();
        set_mode(&job.config_file(), mode);
        let expected = format!("cpi.json: is writable by group or others (mode {mode:o}); run `chmod go-w` on it");
        info(&job).fails(CPI_ERROR, &[&expected]);
        set_mode(&job.config_file(), 0o600);
        set_mode(&job.policy_file(), mode);
        let expected = format!("policy.json: is writable by group or others (mode {mode:o})");
        has_vm(&job).fails(CPI_ERROR, &[&expected]);
    }
}

#[test]
fn info_needs_no_policy() {
    let job = Job::default();
    fs::remove_file(job.policy_file()).unwrap();
    info(&job).result();
    has_vm(&job).fails(CPI_ERROR, &["policy.json: cannot be read"]);
}

#[test]
fn the_error_says_why_a_file_is_not_a_valid_config() {
    let job = Job::default();
    let valid = fs::read_to_string(job.config_file()).unwrap();
    for (text, expected) in [
        (Vec::new(), "the file is not JSON"),
        (b"version: 1\n".to_vec(), "the file is not JSON"),
        (b"[]".to_vec(), "the file holds a list; it must hold a JSON object"),
        (b"{}".to_vec(), "`version` is missing; set \"version\": 1"),
        (valid.as_bytes()[..valid.len() - 2].to_vec(), "the file is not JSON"),
        (format!("{valid}{valid}").into_bytes(), "the file is not JSON"),
        (b"{\"version\":1,\"version\":1}".to_vec(), "`version` occurs twice"),
        (b"{\"a\":\"\xff\"}".to_vec(), "UTF-8"),
        (format!("{}{}", "[".repeat(9999), "]".repeat(9999)).into_bytes(), "the file is not JSON"),
        (format!("{valid}{}", " ".repeat(5 << 20)).into_bytes(), "is larger than 4 MiB"),
    ] {
        write(&job.config_file(), &text);
        info(&job).fails(CPI_ERROR, &["config: ", "cpi.json: ", expected]);
    }
}

/// Each row sets one key of a config that is right. The runtime's unit tests read the rows, too.
const MISTAKES: &str = include_str!("../cases/config-mistakes.json");

#[test]
fn values_of_a_wrong_type_and_unknown_keys_are_refused() {
    let rows: Vec<Value> = serde_json::from_str(MISTAKES).unwrap();
    for row in rows {
        let (key, expected) = (row["key"].as_str().unwrap(), row["says"].as_str().unwrap());
        let job = Job::default().configure(|config| config[key] = row["value"].clone());
        info(&job).fails(CPI_ERROR, &["config: ", "cpi.json: ", expected]);
    }
}

#[test]
fn the_log_lists_every_problem_and_no_value() {
    let job = Job::default().configure(|config| {
        config["allow_local"] = json!(format!("{CANARY}-as-a-type-error"));
        config["agent"] = json!({"mbus": 7, "ntp": format!("{CANARY}-b")});
        config["registry"] =
            json!({"endpoint": format!("http://u:{CANARY}@h"), "user": "u", "password": format!("{CANARY}-d")});
        config["polcy"] = json!(format!("{CANARY}-e"));
        config["version"] = json!(7);
    });
    let response = info(&job);
    response.fails(CPI_ERROR, &["`version` must be 1", "more; `wasm-cpi check` lists them"]);
    for expected in ["`version`", "`allow_local`", "`agent`", "`registry`", "`polcy`"] {
        assert!(response.log().contains(expected), "{expected} in {}", response.log());
    }
}

#[test]
fn the_error_names_an_invalid_policy() {
    for (policy, expected) in [
        (json!([]), "policy.json: "),
        (json!({}), "version"),
        (json!({"version": 1, "htpp": []}), "htpp"),
        (json!({"version": 1, "http": [{}]}), "policy.json: "),
        (json!({"version": 1, "http": 7}), "http"),
    ] {
        let job = Job::default().policy(policy);
        has_vm(&job).fails(CPI_ERROR, &["config: ", expected]);
    }
}

#[test]
fn the_error_names_a_missing_guest() {
    let job = Job::default().configure(|config| config["guest"]["path"] = json!("../no/such.wasm"));
    info(&job).fails(
        CPI_ERROR,
        &[
            "config: guest ",
            "no/such.wasm: cannot be read",
            "No such file",
            "check `guest.path`, or `guest.package` and `guest.file`",
        ],
    );
    for path in ["/", "/dev/zero"] {
        let job = Job::default().configure(|config| config["guest"]["path"] = json!(path));
        info(&job)
            .fails(CPI_ERROR, &["is not a regular file; check `guest.path`, or `guest.package` and `guest.file`"]);
    }
}

#[test]
fn a_guest_with_another_digest_is_refused_and_the_error_shows_both_digests() {
    let pin = "0".repeat(64);
    let job = Job::default().configure(|config| config["guest"]["sha256"] = json!(pin));
    let real = format!("its sha256 is {}, but `guest.sha256` pins {pin}", dist::probe_sha256());
    info(&job).fails(CPI_ERROR, &["config: guest ", &real, "if you trust the new file, change the pin"]);
}

#[test]
fn the_digest_is_checked_before_anything_is_compiled() {
    let job =
        Job::new().guest_bytes(b"no wasm at all").configure(|config| config["guest"]["sha256"] = json!("0".repeat(64)));
    info(&job).fails(CPI_ERROR, &["pins 000"]);
    assert!(job.cached("").is_empty());
}

/// Files that an operator may have configured instead of a component.
#[test]
fn the_error_says_what_a_file_is_that_is_not_a_component() {
    let probe = fs::read(dist::probe()).unwrap();
    let module = [b"\0asm\x01\0\0\0".as_slice()].concat();
    for (what, bytes, expected) in [
        ("empty", Vec::new(), "is empty"),
        ("a core module", module, "is a core module, not a component: build it for wasm32-wasip2"),
        ("native code", fs::read(dist::hot()).unwrap()[..4096].to_vec(), "(ELF); use the .wasm component itself"),
        ("text", b"(component)".to_vec(), "is WebAssembly text; use the binary component"),
        ("a script", b"#!/bin/sh\necho '{}'\n".to_vec(), "is not WebAssembly"),
        ("a cut component", probe[..probe.len() / 2].to_vec(), "damaged"),
        ("a cut header", probe[..6].to_vec(), "the guest "),
        ("only a header", probe[..8].to_vec(), "does not fit the world bosh:cpi"),
        ("a component of nothing", hostile::component("(component)").unwrap(), "does not fit the world bosh:cpi"),
        ("garbage behind it", [probe.as_slice(), b"garbage"].concat(), "the guest "),
    ] {
        let job = Job::new().guest_bytes(&bytes);
        let response = info(&job);
        assert!(response.message().contains(expected), "{what}: {}", response.message());
        response.fails(CPI_ERROR, &["config: ", "guest.wasm: "]);
        assert!(job.cached(".json").is_empty(), "{what} was stored");
    }
}

#[test]
fn compiled_code_is_never_accepted_as_a_guest() {
    let cached = fs::read_dir(dist::shared_cache()).unwrap().map(|entry| entry.unwrap().path());
    let artifact = cached.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "cwasm"));
    let job = Job::new().guest(&artifact.unwrap());
    info(&job).fails(CPI_ERROR, &["(ELF); use the .wasm component itself"]);
}

#[test]
fn a_flipped_bit_in_the_guest_never_crashes_the_runtime() {
    let probe = fs::read(dist::probe()).unwrap();
    for part in 1..4 {
        let mut bytes = probe.clone();
        let at = bytes.len() * part / 4;
        bytes[at] ^= 0x10;
        // The file may still be a valid component; then it answers or traps.
        let response = has_vm(&Job::new().guest_bytes(&bytes));
        let _: &Value = &response.json;
    }
}

#[test]
fn imports_that_no_guest_may_use_are_all_listed_and_refused() {
    let job = Job::new().guest_bytes(&hostile::guest("foreign-imports"));
    let response = info(&job);
    response.fails(
        CPI_ERROR,
        &[
            "imports wasi:http/outgoing-handler@0.2.0, which this runtime does not offer; use bosh:cpi/http",
            "imports acme:secrets/store, which this runtime does not offer",
            "imports bosh:cpi@0.9.0, but this runtime offers 0.1.0",
            "imports bosh:cpi/files@0.1.0, which bosh:cpi does not have",
            "imports wasi:clocks/wall-clock@0.3.0, which this runtime does not offer",
        ],
    );
}

#[test]
fn features_of_wasm_that_no_guest_needs_are_refused() {
    for name in ["memory64", "multi-memory", "shared-memory"] {
        let job = Job::new().guest_bytes(&hostile::guest(name));
        info(&job).fails(CPI_ERROR, &["config: ", "guest.wasm: the guest "]);
    }
}

#[test]
fn needs_that_are_declared_twice_or_cannot_be_parsed_are_refused() {
    let plain = || hostile::guest("plain");
    let section = "bosh-cpi:needs";
    let twice = hostile::with_section(hostile::with_section(plain(), section, b"{\"version\":1}"), section, b"{}");
    info(&Job::new().guest_bytes(&twice)).fails(CPI_ERROR, &["declares its needs twice"]);
    let binary = hostile::with_section(plain(), section, b"\xff\xfe");
    info(&Job::new().guest_bytes(&binary)).fails(CPI_ERROR, &["declares needs that are not UTF-8"]);
    for text in ["", "needs", "[]", "{\"version\":9}", "{\"version\":1,\"htpp\":[]}"] {
        let job = Job::new().guest_bytes(&hostile::with_section(plain(), section, text.as_bytes()));
        has_vm(&job).fails(CPI_ERROR, &["config: "]);
    }
}

#[test]
fn methods_that_need_a_registry_fail_if_none_is_configured() {
    let job = Job::default();
    for (method, arguments) in [
        ("create_vm", json!(["agent-1", "stemcell-1", {}, {}, [], {}])),
        ("delete_vm", json!(["vm-1"])),
        ("attach_disk", json!(["vm-1", "disk-1"])),
        ("detach_disk", json!(["vm-1", "disk-1"])),
    ] {
        for (api_version, stemcell) in [(1, Some(2)), (2, Some(1)), (2, None), (3, Some(1))] {
            let call = job.call(method, arguments.clone()).api_version(api_version).stemcell_api_version(stemcell);
            let expected = format!("config: `{method}` needs a registry");
            call.run().fails(CPI_ERROR, &[&expected, "add \"registry\":", "or use a newer stemcell"]);
        }
    }
}

#[test]
fn paths_are_relative_to_the_directory_of_the_config() {
    let job = Job::new();
    make_dir(&job.path("guests"));
    fs::copy(dist::probe(), job.path("guests/p.wasm")).unwrap();
    fs::rename(job.policy_file(), job.path("guests/policy")).unwrap();
    let job = job.configure(|config| {
        config["guest"]["path"] = json!("../guests/p.wasm");
        config["policy"] = json!("../guests/policy");
    });
    assert_eq!(*has_vm(&job).result(), true);
    assert_eq!(job.cached(".json").len(), 1);
}

/// On a Director, `/var/vcap/jobs/NAME` is a symbolic link.
#[test]
fn a_job_behind_symbolic_links_works() {
    let job = Job::new().guest_bytes(&hostile::guest("small"));
    symlink(job.path(""), job.path("link")).unwrap();
    symlink(job.path("link/config/cpi.json"), job.path("config/linked.json")).unwrap();
    for path in ["link/config/cpi.json", "link/config/linked.json"] {
        let response = job.call("has_vm", json!(["vm-1"])).config(job.path(path)).run();
        assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
    }
}

#[test]
fn the_log_has_the_configured_level_and_format() {
    let script = json!([
        {"op": "log", "level": "debug", "message": "at debug"},
        {"op": "log", "level": "warn", "message": "at \"warn\""},
    ]);
    let with = |log: Value| Job::default().configure(|config| config["log"] = log).script(script.clone()).run().stderr;
    assert_eq!(with(json!({"level": "error"})), "");
    assert_eq!(with(json!({})), "cpi-123456 probe warn: at \"warn\"\n");
    assert!(with(json!({"level": "debug"})).contains("cpi-123456 probe debug: at debug\n"));
    let line: Value = serde_json::from_str(with(json!({"format": "json"})).trim()).unwrap();
    assert_eq!(line, json!({"request_id": "cpi-123456", "source": "probe", "level": "warn", "message": "at \"warn\""}));
}

#[test]
fn a_config_or_policy_of_another_user_is_refused() {
    if !is_root("giving files away") {
        return;
    }
    for file in ["config/cpi.json", "config/policy.json"] {
        let job = Job::default();
        give(&job.path(file), NOBODY);
        let response = job.call("has_vm", json!(["vm-1"])).run();
        response.fails(CPI_ERROR, &[file, "belongs to user 65534, neither to this user (0) nor to root"]);
    }
}

#[test]
fn a_secret_of_the_wrong_type_is_not_quoted() {
    for (key, section) in [
        ("registry", json!({"endpoint": "http://127.0.0.1", "user": "u", "password": 12_345_678_901_u64})),
        ("agent", json!({"mbus": 12_345_678_901_u64})),
        ("agent", json!({"mbus": ["12345678901"]})),
    ] {
        let response = Job::default().configure(|config| config[key] = section).call("has_vm", json!(["vm-1"])).run();
        response.fails(CPI_ERROR, &[&format!("`{key}` is invalid"), "expected a string"]);
        let all = format!("{}{}", response.json, response.stderr);
        assert!(!all.contains("12345678901"), "{all}");
    }
}
