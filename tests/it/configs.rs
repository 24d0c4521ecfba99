//! Files of the operator that are not as they should be: each is answered with
//! a `CpiError` that names the file, the key, and what to do.

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
fn a_config_that_is_not_there_is_named() {
    let job = Job::default();
    fs::remove_file(job.config_file()).unwrap();
    info(&job).fails(CPI_ERROR, &["config: ", "config/cpi.json: cannot be read", "No such file", "check the path"]);
    let empty = job.call("info", json!([])).config("").run();
    empty.fails(CPI_ERROR, &["config: ", "cannot be read"]);
}

#[test]
fn an_unknown_method_is_one_even_without_a_config() {
    let job = Job::default();
    fs::remove_file(job.config_file()).unwrap();
    job.call("ping", json!([])).run().fails(tests::NOT_IMPLEMENTED, &["Method is not known, got: ping"]);
}

#[test]
fn a_config_that_is_no_file_is_refused_without_waiting() {
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
fn a_config_that_this_user_may_not_read_is_named() {
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
fn a_file_that_others_can_write_is_refused() {
    for mode in [0o620, 0o602, 0o666, 0o660, 0o777] {
        let job = Job::default();
        set_mode(&job.config_file(), mode);
        let said = format!("cpi.json: is writable by group or others (mode {mode:o}); run `chmod go-w` on it");
        info(&job).fails(CPI_ERROR, &[&said]);
        set_mode(&job.config_file(), 0o600);
        set_mode(&job.policy_file(), mode);
        let said = format!("policy.json: is writable by group or others (mode {mode:o})");
        has_vm(&job).fails(CPI_ERROR, &[&said]);
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
fn a_config_that_is_no_config_says_why() {
    let job = Job::default();
    let valid = fs::read_to_string(job.config_file()).unwrap();
    for (text, said) in [
        (Vec::new(), "the file is not JSON"),
        (b"version: 1\n".to_vec(), "the file is not JSON"),
        (b"[]".to_vec(), "must hold a JSON object"),
        (b"{}".to_vec(), "`version` is missing; set \"version\": 1"),
        (valid.as_bytes()[..valid.len() - 2].to_vec(), "the file is not JSON"),
        (format!("{valid}{valid}").into_bytes(), "the file is not JSON"),
        (b"{\"version\":1,\"version\":1}".to_vec(), "`version` stands there twice"),
        (b"{\"a\":\"\xff\"}".to_vec(), "UTF-8"),
        (format!("{}{}", "[".repeat(9999), "]".repeat(9999)).into_bytes(), "the file is not JSON"),
        (format!("{valid}{}", " ".repeat(5 << 20)).into_bytes(), "is larger than 4 MiB"),
    ] {
        write(&job.config_file(), &text);
        info(&job).fails(CPI_ERROR, &["config: ", "cpi.json: ", said]);
    }
}

#[test]
fn every_key_has_its_type_and_an_unknown_one_is_refused() {
    for (key, value, said) in [
        ("polcy", json!("x"), "`polcy` is not a key of the configuration; remove it or mend its spelling"),
        ("version", json!(2), "`version` must be 1"),
        ("guest", json!(null), "`guest` is missing; add"),
        ("guest", json!("probe.wasm"), "`guest` is not right"),
        ("guest", json!({"path": "x"}), "`guest.sha256` must be 64 lower-case hex digits"),
        ("guest", json!({"sha256": "0".repeat(64)}), "`guest` must have either `path`, or `package` and `file`"),
        ("guest", json!({"path": "x", "file": "y"}), "`guest` must have either `path`, or `package` and `file`"),
        ("guest", json!({"package": "p", "file": "f"}), "nobody says where packages are; run it with `--packages DIR`"),
        ("guest", json!({"package": "../p", "file": "f"}), "`../p`, which is no package's name"),
        ("guest", json!({"package": "p", "file": "../f"}), "`file` must lie in its package"),
        ("modules", json!(["acme"]), "`modules` must be an object that has an object for each module's name"),
        ("modules", json!({"acme": 1}), "`modules` must be an object that has an object for each module's name"),
        ("proxy", json!("http://p.test:3128"), "`proxy` is not right"),
        ("proxy", json!({"https": format!("socks5://{CANARY}")}), "`https` must be the URL of an HTTP proxy"),
        ("proxy", json!({"no_proxy": "a.test"}), "`proxy` is not right"),
        ("guest", json!({"path": "x", "sha256": "0", "sha": 1}), "unknown field `sha`"),
        ("guest", json!({"path": "x", "sha256": "AB"}), "`guest.sha256` must be 64 lower-case hex digits"),
        ("properties", json!([]), "`properties` is not right"),
        ("agent", json!({"mbs": 1}), "`agent` is not right"),
        ("registry", json!({"endpoint": "x"}), "`registry` is not right"),
        ("policy", json!(7), "`policy` must be the path of a file, or a policy itself"),
        ("limits", json!({"wall_second": 1}), "unknown field `wall_second`"),
        ("limits", json!({"wall_seconds": "1"}), "`limits` is not right"),
        ("limits", json!({"wall_seconds": 0}), "`limits.wall_seconds` is 0; it must be from 1 to"),
        ("limits", json!({"result_depth": 91}), "`limits.result_depth` is 91; it must be from 1 to 90"),
        ("log", json!({"level": "loud"}), "`log` is not right"),
        ("log", json!({"format": "xml"}), "`log` is not right"),
        ("cache", json!(false), "`cache` is not right"),
        ("image_dirs", json!("/"), "`image_dirs` is not right"),
        ("allow_local", json!("yes"), "`allow_local` is not right"),
        ("debug", json!({"cpi": {"api_version": 4}}), "`debug.cpi.api_version` must be from 1 to 3"),
        ("debug", json!({"cpi": {"api_version": 0}}), "`debug.cpi.api_version` must be from 1 to 3"),
        ("debug", json!({"cpu": {}}), "`debug` is not right"),
    ] {
        let job = Job::default().configure(|config| config[key] = value);
        info(&job).fails(CPI_ERROR, &["config: ", "cpi.json: ", said]);
    }
}

#[test]
fn all_problems_are_in_the_log_and_no_value_is() {
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
    for said in ["`version`", "`allow_local`", "`agent`", "`registry`", "`polcy`"] {
        assert!(response.log().contains(said), "{said} in {}", response.log());
    }
}

#[test]
fn a_policy_that_is_not_right_is_named() {
    for (policy, said) in [
        (json!([]), "policy.json: "),
        (json!({}), "version"),
        (json!({"version": 1, "htpp": []}), "htpp"),
        (json!({"version": 1, "http": [{}]}), "policy.json: "),
        (json!({"version": 1, "http": 7}), "http"),
    ] {
        let job = Job::default().policy(policy);
        has_vm(&job).fails(CPI_ERROR, &["config: ", said]);
    }
}

#[test]
fn a_guest_that_is_not_there_is_named() {
    let job = Job::default().configure(|config| config["guest"]["path"] = json!("../no/such.wasm"));
    info(&job)
        .fails(CPI_ERROR, &["config: guest ", "no/such.wasm: cannot be read", "No such file", "check `guest.path`"]);
    for path in ["/", "/dev/zero"] {
        let job = Job::default().configure(|config| config["guest"]["path"] = json!(path));
        info(&job).fails(CPI_ERROR, &["is not a regular file; check `guest.path`"]);
    }
}

#[test]
fn a_guest_with_another_digest_is_refused_and_both_are_told() {
    let pin = "0".repeat(64);
    let job = Job::default().configure(|config| config["guest"]["sha256"] = json!(pin));
    let real = format!("its sha256 is {}, but `guest.sha256` pins {pin}", dist::probe_sha256());
    info(&job).fails(CPI_ERROR, &["config: guest ", &real, "if you trust the new file, change the pin"]);
}

#[test]
fn a_digest_is_judged_before_anything_is_compiled() {
    let job =
        Job::new().guest_bytes(b"no wasm at all").configure(|config| config["guest"]["sha256"] = json!("0".repeat(64)));
    info(&job).fails(CPI_ERROR, &["pins 000"]);
    assert!(job.cached("").is_empty());
}

/// What somebody may have put into the place of a component.
#[test]
fn a_file_that_is_no_component_is_told_what_it_is() {
    let probe = fs::read(dist::probe()).unwrap();
    let module = [b"\0asm\x01\0\0\0".as_slice()].concat();
    for (what, bytes, said) in [
        ("empty", Vec::new(), "is empty"),
        ("a core module", module, "is a core module, not a component: build it for wasm32-wasip2"),
        ("native code", fs::read(dist::hot()).unwrap()[..4096].to_vec(), "(ELF): give the .wasm component itself"),
        ("text", b"(component)".to_vec(), "is WebAssembly text: give the binary component"),
        ("a script", b"#!/bin/sh\necho '{}'\n".to_vec(), "is not WebAssembly"),
        ("a cut component", probe[..probe.len() / 2].to_vec(), "damaged"),
        ("a cut header", probe[..6].to_vec(), "the module "),
        ("only a header", probe[..8].to_vec(), "does not fit the world bosh:cpi"),
        ("a component of nothing", hostile::component("(component)").unwrap(), "does not fit the world bosh:cpi"),
        ("garbage behind it", [probe.as_slice(), b"garbage"].concat(), "the module "),
    ] {
        let job = Job::new().guest_bytes(&bytes);
        let response = info(&job);
        assert!(response.message().contains(said), "{what}: {}", response.message());
        response.fails(CPI_ERROR, &["config: ", "guest.wasm: "]);
        assert!(job.cached(".json").is_empty(), "{what} was stored");
    }
}

#[test]
fn compiled_code_is_never_taken_for_a_guest() {
    let cached = fs::read_dir(dist::shared_cache()).unwrap().map(|entry| entry.unwrap().path());
    let artifact = cached.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "cwasm"));
    let job = Job::new().guest(&artifact.unwrap());
    info(&job).fails(CPI_ERROR, &["(ELF): give the .wasm component itself"]);
}

#[test]
fn a_flipped_bit_anywhere_never_crashes_the_runtime() {
    let probe = fs::read(dist::probe()).unwrap();
    for part in 1..4 {
        let mut bytes = probe.clone();
        let at = bytes.len() * part / 4;
        bytes[at] ^= 0x10;
        // It may still be a component; then it answers, or traps.
        let response = has_vm(&Job::new().guest_bytes(&bytes));
        let _: &Value = &response.json;
    }
}

#[test]
fn imports_that_no_cpi_is_given_are_refused_with_all_of_them() {
    let job = Job::new().guest_bytes(&hostile::guest("foreign-imports"));
    let response = info(&job);
    response.fails(
        CPI_ERROR,
        &[
            "imports wasi:http/outgoing-handler@0.2.0, which no CPI is given; use bosh:cpi/http",
            "imports acme:secrets/store, which no CPI is given",
            "wants bosh:cpi@0.9.0, but this runtime offers 0.1.0",
            "imports bosh:cpi/files@0.1.0, which bosh:cpi does not have",
            "imports wasi:clocks/wall-clock@0.3.0, which no CPI is given",
        ],
    );
}

#[test]
fn features_of_wasm_that_no_guest_needs_are_refused() {
    for name in ["memory64", "multi-memory", "shared-memory"] {
        let job = Job::new().guest_bytes(&hostile::guest(name));
        info(&job).fails(CPI_ERROR, &["config: ", "guest.wasm: the module "]);
    }
}

#[test]
fn needs_are_declared_once_and_readable() {
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
fn a_registry_that_is_needed_and_not_configured_is_named_before_anything_happens() {
    let job = Job::default();
    for (method, arguments) in [
        ("create_vm", json!(["agent-1", "stemcell-1", {}, {}, [], {}])),
        ("delete_vm", json!(["vm-1"])),
        ("attach_disk", json!(["vm-1", "disk-1"])),
        ("detach_disk", json!(["vm-1", "disk-1"])),
    ] {
        for (api_version, stemcell) in [(1, Some(2)), (2, Some(1)), (2, None), (3, Some(1))] {
            let call = job.call(method, arguments.clone()).api_version(api_version).stemcell(stemcell);
            let said = format!("config: `{method}` needs a registry");
            call.run().fails(CPI_ERROR, &[&said, "add \"registry\":", "or use a newer stemcell"]);
        }
    }
}

#[test]
fn paths_are_relative_to_the_config() {
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

/// As a Director's own jobs are: `/var/vcap/jobs/NAME` is a link.
#[test]
fn a_job_behind_links_works() {
    let job = Job::new().guest_bytes(&hostile::guest("small"));
    symlink(job.path(""), job.path("link")).unwrap();
    symlink(job.path("link/config/cpi.json"), job.path("config/linked.json")).unwrap();
    for path in ["link/config/cpi.json", "link/config/linked.json"] {
        let response = job.call("has_vm", json!(["vm-1"])).config(job.path(path)).run();
        assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
    }
}

#[test]
fn levels_and_formats_of_the_log_are_as_configured() {
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
fn a_file_of_another_user_is_refused() {
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
        response.fails(CPI_ERROR, &[&format!("`{key}` is not right"), "expected a string"]);
        let all = format!("{}{}", response.json, response.stderr);
        assert!(!all.contains("12345678901"), "{all}");
    }
}
