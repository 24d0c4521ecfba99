//! Modules of other releases: a small release with a module in its own package, several
//! modules in one job, and how each of them is called.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tests::process::{GUARD, run};
use tests::release::{Installation, job_source, yaml};
use tests::rows::texts;
use tests::servers::{Answer, Server};
use tests::{CPI_ERROR, Job, cloud, dist, hostile, job, probe};

/// Returns the directory of another release.
fn acme() -> PathBuf {
    dist::root().join("tests/release/acme")
}

/// Compiles the packages of the other release as BOSH does: runs the script of each package in a
/// directory with the files that its spec lists.
fn compile_packages(installation: &Installation, module: &[u8]) {
    let blobs = [("acme/acme.wasm", module), ("acme/acme.json", br#"{"version":1,"http":[]}"#), ("other/file", b"")];
    for package in texts(&yaml(&acme().join("jobs/acme_module/spec"))["packages"]) {
        let directory = acme().join("packages").join(&package);
        let listed = texts(&yaml(&directory.join("spec"))["files"]);
        let sources = tempfile::tempdir().unwrap();
        for (path, content) in blobs.iter().filter(|(path, _)| listed.iter().any(|pattern| fits(pattern, path))) {
            let to = sources.path().join(path);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            job::write(&to, content);
        }
        let target = installation.path("packages").join(&package);
        fs::create_dir_all(&target).unwrap();
        let mut bash = Command::new("bash");
        bash.arg("-x").arg(directory.join("packaging")).current_dir(sources.path());
        bash.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        bash.env("BOSH_COMPILE_TARGET", sources.path()).env("BOSH_INSTALL_TARGET", &target);
        bash.env("BOSH_PACKAGE_NAME", &package).env("BOSH_PACKAGES_DIR", installation.path("packages"));
        let finished = run(&mut bash, b"", GUARD);
        assert!(finished.status.success(), "{}", String::from_utf8_lossy(&finished.stderr));
    }
}

/// Returns true if the pattern is the path of the file, or names all files of its directory.
fn fits(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix("/*") == path.rsplit_once('/').map(|(directory, _)| directory)
}

fn guest(module: &[u8]) -> Value {
    json!({"package": "acme-cpi", "file": "acme.wasm", "sha256": dist::sha256(module)})
}

/// Renders and installs the job again, as a deployment with a changed manifest does.
fn deploy(job: &Job, manifest: &Value) {
    Installation::at(&job.path("")).job(&job_source("wasm_cpi"), manifest).unwrap();
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs `wasm-cpi` with the config of the installed job. Returns the exit code and the output.
fn tool(job: &Job, arguments: &[&str]) -> (i32, String) {
    let config = job.config_file();
    let mut tool = Command::new(job.path("packages/wasm-cpi/wasm-cpi"));
    let finished = run(tool.args(arguments).arg("--config").arg(config).env_clear(), b"", GUARD);
    let output = [finished.stdout, finished.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (finished.status.code().unwrap_or(-1), output)
}

#[test]
fn a_module_of_another_release_is_found_by_package_and_file_and_must_match_its_pin() {
    let module = hostile::guest("plain");
    let job = Job::installed(&json!({"guest": {"package": "acme-cpi", "file": "acme.wasm", "sha256": "0".repeat(64)}}));
    let installation = Installation::at(&job.path(""));
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", "acme.wasm"]);
    installation.job(&acme().join("jobs/acme_module"), &json!({})).unwrap();
    assert!(!job.path("jobs/acme_module/bin").exists(), "the job of the module must not have a bin/cpi");
    assert_eq!(yaml(&acme().join("config/final.yml"))["name"], "acme");
    compile_packages(&installation, &module);
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", "sha256"]);
    deploy(&job, &json!({"guest": guest(&module)}));
    let described = job.call("delete_disk", json!(["d"])).run();
    described.fails(tests::NOT_IMPLEMENTED, &["hostile 1.0.0 does not implement delete_disk"]);
}

#[test]
fn each_module_of_a_job_has_its_own_properties_grants_and_script() {
    let server = Server::answering(Answer::ok("hello"));
    let module = fs::read(dist::probe()).unwrap();
    let grant = server.grant("cloud");
    let manifest = json!({
        "guest": {"file": "probe.wasm"}, "properties": {"who": "the job"}, "policy": {"expose": ["who"]},
        "allow_local": true, "user": user(),
        "modules": {
            "acme": {"guest": guest(&module), "properties": {"who": "acme", "more": "sealed"},
                     "policy": {"expose": ["who"], "http": [grant], "presets": [{"package": "acme-cpi", "file": "acme.json"}]}},
            "plain": {"guest": guest(&module), "debug": {"cpi": {"api_version": 2}}},
        },
    });
    let job = Job::installed(&manifest);
    compile_packages(&Installation::at(&job.path("")), &module);
    let pre_start = run(&mut Command::new(job.path("jobs/wasm_cpi/bin/pre-start")), b"", GUARD);
    let output = [pre_start.stdout, pre_start.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(pre_start.status.success(), "{output}");

    let script = json!([{"op": "config"}, {"op": "http", "url": server.url("/x")}]);
    let mut job = job;
    let mut seen = |path: &str| {
        job = std::mem::take(&mut job).with_program(path);
        let outcomes = cloud::outcomes(&job, &script);
        (outcomes[0]["ok"].clone(), outcomes[1]["ok"]["status"].clone())
    };
    assert_eq!(seen("jobs/wasm_cpi/bin/cpi"), (json!({"who": "the job"}), Value::Null));
    let (properties, status) = seen("data/wasm_cpi/bin/acme");
    assert_eq!((&properties["who"], status), (&json!("acme"), json!(200)));
    assert_ne!(properties["more"], "sealed");
    // A module has neither the properties nor the grants of other modules.
    assert_eq!(seen("data/wasm_cpi/bin/plain"), (json!({}), Value::Null));
    assert_eq!(job.call("info", json!([])).run().result()["api_version"], 2);

    // The same with a thin job whose name is the type of the cpi-config.
    let installation = Installation::at(&job.path(""));
    installation.job(&job_source("openstack_cpi"), &json!({"module": "acme"})).unwrap();
    job = job.with_program("jobs/openstack_cpi/bin/cpi");
    let asked = job.call("has_vm", json!([probe::cid(&script)]));
    assert_eq!(probe::outcomes_in(asked.run().message())[0]["ok"]["who"], "acme");

    let mut unknown = Command::new(job.path("jobs/wasm_cpi/bin/cpi"));
    let request = job.call("has_vm", json!(["vm-1"])).request();
    let answered = run(unknown.arg("unknown").env_clear(), request.as_bytes(), GUARD);
    let answered = String::from_utf8_lossy(&answered.stdout).into_owned();
    assert!(answered.contains("there is no module `unknown`; `modules` has: acme, plain"), "{answered}");
}

#[test]
fn a_module_can_be_inspected_upgraded_and_rolled_back() {
    // The new version needs more than the old one.
    let old = cloud::probe_with_needs(&json!({"version": 1, "http": []}));
    let new = fs::read(dist::probe()).unwrap();
    let manifest = |module: &[u8]| json!({"guest": guest(module), "user": user()});
    let job = Job::installed(&manifest(&old));
    let installation = Installation::at(&job.path(""));
    compile_packages(&installation, &old);
    assert_eq!(job.call("info", json!([])).run().result()["stemcell_formats"], json!(["probe-raw"]));

    let files = tempfile::tempdir().unwrap();
    let (before, after) = (files.path().join("old.wasm"), files.path().join("new.wasm"));
    job::write(&before, &old);
    job::write(&after, &new);
    let inspected = run(Command::new(dist::tool()).arg("inspect").args([&before, &after]).env_clear(), b"", GUARD);
    assert_eq!(inspected.status.code(), Some(3), "the new version needs more");

    // The new module is deployed before its pin is changed: it must not run.
    compile_packages(&installation, &new);
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", "sha256"]);
    assert_eq!(tool(&job, &["check"]).0, 1);
    deploy(&job, &manifest(&new));
    let (code, output) = tool(&job, &["check"]);
    assert!(code == 0 && output.contains("matches its pin, and imports only what the runtime offers"), "{output}");
    let module = job.path("packages/acme-cpi/acme.wasm");
    let (code, output) = tool(&job, &["inspect", module.to_str().unwrap()]);
    assert!(code == 0 && output.contains(&dist::sha256(&new)), "{output}");
    assert_eq!(*job.call("has_vm", json!(["vm-1"])).run().result(), true);

    compile_packages(&installation, &old);
    deploy(&job, &manifest(&old));
    assert_eq!(*job.call("has_vm", json!(["vm-1"])).run().result(), true);
    assert_eq!(tool(&job, &["check"]).0, 0);
}

#[test]
fn the_tool_selects_a_module_by_name_and_finds_its_package_by_option() {
    let module = fs::read(dist::probe()).unwrap();
    let job = Job::installed(&json!({"modules": {"acme": {"guest": guest(&module)}}}));
    compile_packages(&Installation::at(&job.path("")), &module);
    let (code, output) = tool(&job, &["check", "--module", "acme"]);
    assert!(code == 0 && output.contains("cpi.json: 0 grants"), "{output}");
    let unnamed =
        "choose one of its `modules`: acme (with `--module`, or with `exec_path` data/JOB/bin/NAME in the cpi-config)";
    let (code, output) = tool(&job, &["check"]);
    assert!(code == 1 && output.contains(unnamed), "{output}");
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", unnamed]);

    let elsewhere = job.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(job.path("packages/acme-cpi"), elsewhere.join("acme-cpi")).unwrap();
    let call = ["call", "has_vm", "vm-1", "--module", "acme"];
    let (code, output) = tool(&job, &call);
    assert!(code != 0 && output.contains("acme.wasm"), "{output}");
    let (code, output) = tool(&job, &[&call[..], &["--packages", elsewhere.to_str().unwrap()]].concat());
    assert!(code == 0 && output.contains("true"), "{output}");
}
