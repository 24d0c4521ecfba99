//! The rendered job, run as its callers run it: an empty environment, no arguments, no
//! newline at the end of stdin, and files with the modes that an agent gives them.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tests::process::{GUARD, run};
use tests::release::{Installation, job_source};
use tests::response::CANARY;
use tests::users::{NOBODY, is_root};
use tests::{CPI_ERROR, Job, dist, job};

/// Returns a manifest with the guest `probe`, which needs no cloud.
fn probe() -> Value {
    json!({
        "guest": {"file": "probe.wasm"}, "properties": {"region": "here", "password": format!("{CANARY}-property")},
        "agent": {"mbus": format!("nats://nats:{CANARY}-mbus@10.0.0.6:4222")}, "cache": dist::shared_cache(),
    })
}

fn with(mut manifest: Value, key: &str, value: Value) -> Value {
    manifest[key] = value;
    manifest
}

/// Runs the lifecycle of a VM with a disk.
#[track_caller]
fn run_lifecycle(job: &Job) {
    job::write(&job.path("image"), b"a stemcell");
    let ok = |method: &str, arguments: Value| job.call(method, arguments).api_version(2).run().result().clone();
    assert_eq!(job.call("info", json!([])).run().result()["api_version"], 3);
    let stemcell = ok("create_stemcell", json!([job.path("image"), {}]));
    let vm = ok("create_vm", json!(["agent-1", stemcell, {}, {}, [], {}]))[0].clone();
    assert_eq!(ok("has_vm", json!([vm])), true);
    let disk = ok("create_disk", json!([1024, {}, vm]));
    assert!(ok("attach_disk", json!([vm, disk])).is_string());
    for (method, arguments) in [
        ("set_vm_metadata", json!([vm, {"job": "j"}])),
        ("detach_disk", json!([vm, disk])),
        ("delete_vm", json!([vm])),
        ("delete_disk", json!([disk])),
        ("delete_stemcell", json!([stemcell])),
    ] {
        assert_eq!(ok(method, arguments), Value::Null, "{method}");
    }
}

#[test]
fn calls_of_the_director_and_of_the_cli_work() {
    let job = Job::installed(&probe());
    run_lifecycle(&job);
    let by_cli = job.call("has_vm", json!(["vm-1"])).cli().run();
    assert_eq!(*by_cli.result(), true);
    assert_eq!(job.call("info", json!([])).cli().run().result()["api_version"], 3);
}

#[test]
fn the_script_can_be_called_by_its_path_and_by_symbolic_links() {
    let job = Job::installed(&probe());
    symlink(job.path("jobs/wasm_cpi/bin/cpi"), job.path("jobs/link")).unwrap();
    // As an agent installs a job: a link to the directory of its files.
    fs::create_dir_all(job.path("data/jobs/wasm_cpi")).unwrap();
    fs::rename(job.path("jobs/wasm_cpi"), job.path("data/jobs/wasm_cpi/abc")).unwrap();
    symlink(job.path("data/jobs/wasm_cpi/abc"), job.path("jobs/wasm_cpi")).unwrap();
    // A link to a link, and a relative link.
    symlink("link", job.path("jobs/chain")).unwrap();
    symlink("wasm_cpi/bin/cpi", job.path("jobs/relative")).unwrap();
    let mut job = job;
    for script in ["jobs/wasm_cpi/bin/cpi", "jobs/link", "jobs/chain", "jobs/relative"] {
        job = job.with_program(script);
        assert_eq!(*job.call("has_vm", json!(["vm-1"])).run().result(), true, "{script}");
        assert_eq!(*job.call("has_vm", json!(["vm-1"])).cli().run().result(), true, "{script}");
    }
    let request = job.call("has_vm", json!(["vm-1"])).request();
    for script in ["jobs/wasm_cpi/bin/cpi", "jobs/relative"] {
        let mut shell = Command::new("/bin/sh");
        shell.arg(script).current_dir(job.path("")).env_clear();
        let answered = run(&mut shell, request.as_bytes(), GUARD);
        let output =
            [answered.stdout, answered.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.contains(r#""result":true"#), "{script}: {output}");
    }
}

#[test]
fn the_scripts_use_the_directories_that_the_cli_names_in_the_environment() {
    let job = Job::installed(&probe());
    Installation::at(&job.path("")).job(&job_source("openstack_cpi"), &json!({})).unwrap();
    let (packages, jobs) = (job.path("elsewhere/packages"), job.path("far/jobs"));
    fs::create_dir_all(&jobs).unwrap();
    fs::create_dir(job.path("elsewhere")).unwrap();
    fs::rename(job.path("packages"), &packages).unwrap();
    // Without the variables, one script uses the directory of a Director, and the other one its own.
    let check_looks_for = |job: &Job, path: &str| {
        let call = job.call("has_vm", json!(["vm-1"]));
        let finished = run(&mut call.command(), call.request().as_bytes(), GUARD);
        let stderr = String::from_utf8_lossy(&finished.stderr);
        assert!(!finished.status.success() && stderr.contains(path), "{stderr}");
    };
    check_looks_for(&job, "/var/vcap/packages/wasm-cpi/wasm-cpi-run");
    let call = job.call("has_vm", json!(["vm-1"])).cli().env("BOSH_PACKAGES_DIR", &packages);
    assert_eq!(*call.run().result(), true);

    fs::rename(job.path("jobs/wasm_cpi"), jobs.join("wasm_cpi")).unwrap();
    let thin = job.with_program("jobs/openstack_cpi/bin/cpi");
    check_looks_for(&thin, &thin.path("jobs/wasm_cpi/bin/cpi").display().to_string());
    let call = thin.call("has_vm", json!(["vm-1"])).cli().env("BOSH_PACKAGES_DIR", &packages);
    assert_eq!(*call.env("BOSH_JOBS_DIR", &jobs).run().result(), true);
}

#[test]
fn the_first_call_prepares_the_guest_if_pre_start_did_not_run() {
    let mut manifest = probe();
    manifest.as_object_mut().unwrap().remove("cache");
    let job = Job::installed(&manifest);
    let first = job.call("info", json!([])).cli().run();
    assert_eq!(first.result()["stemcell_formats"], json!(["probe-raw"]));
    let prepared = fs::read_dir(job.path("data/wasm_cpi/cache")).unwrap().count();
    assert_eq!(prepared, 2, "expected an artifact and its manifest in the data directory of the job");
    let stderr = job.call("has_vm", json!(["vm-1"])).run().stderr;
    assert!(!stderr.contains("compil"), "{stderr}");
}

/// Installs a job as an agent does: the files belong to root, and the group of the user that runs
/// calls can read them.
fn install_as_root(manifest: &Value) -> Job {
    let job = Job::installed(manifest);
    job::set_mode(&job.path(""), 0o755);
    for file in ["config/cpi.json", "config/policy.json", "bin/cpi"] {
        let path = job.path("jobs/wasm_cpi").join(file);
        std::os::unix::fs::chown(&path, Some(0), Some(NOBODY)).unwrap();
    }
    job
}

#[test]
fn pre_start_prepares_the_guests_as_the_user_that_runs_calls() {
    if !is_root("preparing as another user") {
        return;
    }
    for (set, cache) in [(Value::Null, "data/wasm_cpi/cache"), (json!("../../../own's/cache"), "own's/cache")] {
        let module =
            json!({"guest": {"package": "wasm-cpi-guests", "file": "probe.wasm"}, "cache": "../../../module's"});
        let mut manifest = with(with(probe(), "user", json!("nobody")), "modules", json!({"other": module}));
        manifest["cache"] = set;
        let job = install_as_root(&manifest);
        let mut pre_start = Command::new(job.path("jobs/wasm_cpi/bin/pre-start"));
        let finished = run(pre_start.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), b"", GUARD);
        let output =
            [finished.stdout, finished.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(finished.status.success() && output.contains("prepared in"), "{output}");
        use std::os::unix::fs::MetadataExt;
        for cache in [cache, "module's"] {
            let entries = fs::read_dir(job.path(cache)).unwrap().map(|entry| entry.unwrap().path());
            let all: Vec<_> = entries.chain([job.path(cache)]).collect();
            assert_eq!(all.len(), 3, "expected an artifact, its manifest and their directory: {all:?}");
            for path in all {
                let metadata = fs::metadata(&path).unwrap();
                assert_eq!((metadata.uid(), metadata.mode() & 0o022), (NOBODY, 0), "{}", path.display());
            }
        }
        let answered = job.call("has_vm", json!(["vm-1"])).user(NOBODY).run();
        assert_eq!(*answered.result(), true);
        assert!(!answered.stderr.contains("compil"), "{}", answered.stderr);
        // Every deployment runs it again.
        let again = run(Command::new(job.path("jobs/wasm_cpi/bin/pre-start")).env("PATH", "/usr/bin:/bin"), b"", GUARD);
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    }
}

#[test]
fn pre_start_does_not_follow_links_in_a_directory_that_others_can_write() {
    if !is_root("a directory of another user") {
        return;
    }
    use std::os::unix::fs::MetadataExt;
    let job = install_as_root(&with(with(probe(), "user", json!("nobody")), "cache", Value::Null));
    let data = job.path("data/wasm_cpi");
    let pre_start = || run(&mut Command::new(job.path("jobs/wasm_cpi/bin/pre-start")), b"", GUARD);
    for target in ["dir", "bin"] {
        fs::create_dir(job.path(target)).unwrap();
        job::write(&job.path(target).join("kept"), b"kept");
    }
    // The agent creates the directory, and its group can create links in it.
    fs::create_dir_all(&data).unwrap();
    std::os::unix::fs::chown(&data, Some(0), Some(NOBODY)).unwrap();
    job::set_mode(&data, 0o770);
    symlink(job.path("dir"), data.join("cache")).unwrap();
    symlink(job.path("bin"), data.join("bin")).unwrap();

    let finished = pre_start();
    let stderr = String::from_utf8_lossy(&finished.stderr);
    assert!(!finished.status.success() && stderr.contains("cache is a link"), "{stderr}");
    fs::remove_file(data.join("cache")).unwrap();
    let finished = pre_start();
    assert!(finished.status.success(), "{}", String::from_utf8_lossy(&finished.stderr));
    for target in ["dir", "bin"] {
        assert_eq!(fs::metadata(job.path(target)).unwrap().uid(), 0);
        assert_eq!(fs::read(job.path(target).join("kept")).unwrap(), b"kept");
    }
    for (path, owner) in [("", 0), ("bin", 0), ("cache", NOBODY)] {
        let metadata = fs::symlink_metadata(data.join(path)).unwrap();
        assert!(metadata.is_dir(), "{path}");
        assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (owner, 0o755), "{path}");
    }
}

#[test]
fn pre_start_fails_if_the_module_differs_from_its_pin() {
    let manifest = json!({"guest": {"file": "probe.wasm", "sha256": "0".repeat(64)}, "user": current_user()});
    let job = Job::installed(&manifest);
    let finished = run(&mut Command::new(job.path("jobs/wasm_cpi/bin/pre-start")), b"", GUARD);
    let stderr = String::from_utf8_lossy(&finished.stderr);
    assert!(!finished.status.success() && stderr.contains("sha256"), "{stderr}");
}

fn current_user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_config_that_others_can_write_is_an_error_and_a_world_readable_one_a_warning() {
    let job = Job::installed(&probe());
    for (file, mode, fails) in [
        ("config/cpi.json", 0o640, false),
        ("config/cpi.json", 0o600, false),
        ("config/cpi.json", 0o660, true),
        ("config/cpi.json", 0o642, true),
        ("config/cpi.json", 0o644, false),
        ("config/policy.json", 0o664, true),
    ] {
        let path = job.path("jobs/wasm_cpi").join(file);
        job::set_mode(&path, mode);
        let response = job.call("has_vm", json!(["vm-1"])).run();
        if fails {
            response.fails(CPI_ERROR, &["config:", "writable by group or others", "chmod go-w"]);
        } else {
            assert_eq!(*response.result(), true);
        }
        let (succeeds, output) = job.check();
        assert_eq!(
            (succeeds, output.contains("is readable by every user")),
            (!fails, mode == 0o644),
            "{mode:o}: {output}"
        );
        job::set_mode(&path, 0o640);
    }
}

#[test]
fn secrets_are_only_in_the_config() {
    let job = Job::installed(&with(probe(), "env", json!({"https_proxy": format!("http://u:{CANARY}@p.test:1")})));
    let mut holding = Vec::new();
    collect(&job.path("jobs"), &mut |path, text| {
        if text.contains(CANARY) {
            holding.push(path.strip_prefix(job.path("jobs")).unwrap().to_string_lossy().into_owned());
        }
    });
    assert_eq!(holding, ["wasm_cpi/config/cpi.json"]);
    // Other processes can read the arguments of the program.
    let script = job.path("jobs/wasm_cpi/bin/cpi");
    let traced = run(Command::new("sh").arg("-x").arg(&script), b"{}", GUARD);
    let commands = String::from_utf8_lossy(&traced.stderr);
    assert!(commands.contains("wasm-cpi-run --config") && !commands.contains(CANARY), "{commands}");
}

fn collect(directory: &Path, found: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, found),
            false => found(&path, &fs::read_to_string(&path).unwrap()),
        }
    }
}

#[test]
fn the_api_version_can_be_limited() {
    for version in [1, 2, 3] {
        let job = Job::installed(&with(probe(), "debug", json!({"cpi": {"api_version": version}})));
        assert_eq!(job.call("info", json!([])).run().result()["api_version"], version);
        let created = job.call("create_disk", json!([1024, {}, null])).api_version(3).run();
        match version {
            3 => assert!(created.result().is_string()),
            _ => {
                created.fails(CPI_ERROR, &["`api_version` is 3", &format!("supports at most {version}")]);
            }
        }
    }
}

#[test]
fn check_reports_that_a_bundled_module_is_pinned_by_its_package() {
    let job = Job::installed(&probe());
    let (succeeds, output) = job.check();
    assert!(succeeds && output.contains("is pinned by its own package; set `guest.sha256`"), "{output}");
    let pin = job.path("packages/wasm-cpi-guests/probe.wasm.sha256");
    for (text, expected) in [("0000", "does not hold a sha256"), (&"0".repeat(64), "sha256")] {
        job::write(&pin, text.as_bytes());
        job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", expected]);
    }
    fs::remove_file(&pin).unwrap();
    job.call("info", json!([]))
        .run()
        .fails(CPI_ERROR, &["`guest.sha256` is not set", "probe.wasm.sha256", "set `guest.sha256`"]);
}
