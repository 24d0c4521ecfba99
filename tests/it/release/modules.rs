//! Modules of other releases: a small release that brings one in a package of its
//! own, several modules side by side, and how each of them is reached.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tests::process::{GUARD, run};
use tests::release::{Installation, job_source, yaml};
use tests::rows::texts;
use tests::servers::{Answer, Server};
use tests::{CPI_ERROR, Job, cloud, dist, hostile, job, probe};

/// The release of somebody else.
fn acme() -> PathBuf {
    dist::root().join("tests/release/acme")
}

/// Compiles the packages of its job as BOSH does: each by its script, run beside the files that its spec lists.
fn package(installation: &Installation, module: &[u8]) {
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

/// A file's path, or all files of a directory.
fn fits(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.strip_suffix("/*") == path.rsplit_once('/').map(|(directory, _)| directory)
}

fn guest(module: &[u8]) -> Value {
    json!({"package": "acme-cpi", "file": "acme.wasm", "sha256": dist::sha256(module)})
}

/// Installs the job again, as a deployment with a changed manifest does.
fn deploy(job: &Job, manifest: &Value) {
    Installation::at(&job.path("")).job(&job_source("wasm_cpi"), manifest).unwrap();
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// `wasm-cpi` on the installed job, and how it exits.
fn tool(job: &Job, words: &[&str]) -> (i32, String) {
    let config = job.config_file();
    let mut tool = Command::new(job.path("packages/wasm-cpi/wasm-cpi"));
    let finished = run(tool.args(words).arg("--config").arg(config).env_clear(), b"", GUARD);
    let said = [finished.stdout, finished.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (finished.status.code().unwrap_or(-1), said)
}

#[test]
fn a_module_of_another_release_is_named_by_package_and_file_and_pinned() {
    let module = hostile::guest("plain");
    let job = Job::installed(&json!({"guest": {"package": "acme-cpi", "file": "acme.wasm", "sha256": "0".repeat(64)}}));
    let installation = Installation::at(&job.path(""));
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", "acme.wasm"]);
    installation.job(&acme().join("jobs/acme_module"), &json!({})).unwrap();
    assert!(!job.path("jobs/acme_module/bin").exists(), "the module's own job has no bin/cpi");
    assert_eq!(yaml(&acme().join("config/final.yml"))["name"], "acme");
    package(&installation, &module);
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", "sha256"]);
    deploy(&job, &json!({"guest": guest(&module)}));
    let described = job.call("delete_disk", json!(["d"])).run();
    described.fails(tests::NOT_IMPLEMENTED, &["hostile 1.0.0 does not implement delete_disk"]);
}

#[test]
fn modules_stand_side_by_side_each_with_its_own_properties_grants_and_way_in() {
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
    package(&Installation::at(&job.path("")), &module);
    let pre_start = run(&mut Command::new(job.path("jobs/wasm_cpi/bin/pre-start")), b"", GUARD);
    let said = [pre_start.stdout, pre_start.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(pre_start.status.success(), "{said}");

    let script = json!([{"op": "config"}, {"op": "http", "url": server.url("/x")}]);
    let mut job = job;
    let mut seen = |path: &str| {
        job = std::mem::take(&mut job).script_at(path);
        let outcomes = cloud::outcomes(&job, &script);
        (outcomes[0]["ok"].clone(), outcomes[1]["ok"]["status"].clone())
    };
    assert_eq!(seen("jobs/wasm_cpi/bin/cpi"), (json!({"who": "the job"}), Value::Null));
    let (properties, status) = seen("data/wasm_cpi/bin/acme");
    assert_eq!((&properties["who"], status), (&json!("acme"), json!(200)));
    assert_ne!(properties["more"], "sealed");
    // What a module has not been given, it has not: neither properties nor grants of its neighbours.
    assert_eq!(seen("data/wasm_cpi/bin/plain"), (json!({}), Value::Null));
    assert_eq!(job.call("info", json!([])).run().result()["api_version"], 2);

    // The same by a thin job, which is called what the cpi-config's type says.
    let installation = Installation::at(&job.path(""));
    installation.job(&job_source("openstack_cpi"), &json!({"module": "acme"})).unwrap();
    job = job.script_at("jobs/openstack_cpi/bin/cpi");
    let asked = job.call("has_vm", json!([probe::cid(&script)]));
    assert_eq!(probe::outcomes_in(asked.run().message())[0]["ok"]["who"], "acme");

    let mut unknown = Command::new(job.path("jobs/wasm_cpi/bin/cpi"));
    let request = job.call("has_vm", json!(["vm-1"])).request();
    let answered = run(unknown.arg("nobody").env_clear(), request.as_bytes(), GUARD);
    let answered = String::from_utf8_lossy(&answered.stdout).into_owned();
    assert!(answered.contains("there is no module `nobody`; `modules` has: acme, plain"), "{answered}");
}

#[test]
fn an_upgrade_is_inspected_checked_deployed_and_taken_back() {
    // The same module, which wants more than before.
    let old = cloud::needing(&json!({"version": 1, "http": []}));
    let new = fs::read(dist::probe()).unwrap();
    let manifest = |module: &[u8]| json!({"guest": guest(module), "user": user()});
    let job = Job::installed(&manifest(&old));
    let installation = Installation::at(&job.path(""));
    package(&installation, &old);
    assert_eq!(job.call("info", json!([])).run().result()["stemcell_formats"], json!(["probe-raw"]));

    let files = tempfile::tempdir().unwrap();
    let (before, after) = (files.path().join("old.wasm"), files.path().join("new.wasm"));
    job::write(&before, &old);
    job::write(&after, &new);
    let inspected = run(Command::new(dist::tool()).arg("inspect").args([&before, &after]).env_clear(), b"", GUARD);
    assert_eq!(inspected.status.code(), Some(3), "it wants more");

    // Its release is deployed before its pin: nothing runs that nobody agreed to.
    package(&installation, &new);
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", "sha256"]);
    assert_eq!(tool(&job, &["check"]).0, 1);
    deploy(&job, &manifest(&new));
    let (code, said) = tool(&job, &["check"]);
    assert!(code == 0 && said.contains("pinned, imports nothing foreign"), "{said}");
    let module = job.path("packages/acme-cpi/acme.wasm");
    let (code, said) = tool(&job, &["inspect", module.to_str().unwrap()]);
    assert!(code == 0 && said.contains(&dist::sha256(&new)), "{said}");
    assert_eq!(*job.call("has_vm", json!(["vm-1"])).run().result(), true);

    package(&installation, &old);
    deploy(&job, &manifest(&old));
    assert_eq!(*job.call("has_vm", json!(["vm-1"])).run().result(), true);
    assert_eq!(tool(&job, &["check"]).0, 0);
}

#[test]
fn a_module_is_meant_by_its_name_wherever_packages_are() {
    let module = fs::read(dist::probe()).unwrap();
    let job = Job::installed(&json!({"modules": {"acme": {"guest": guest(&module)}}}));
    package(&Installation::at(&job.path("")), &module);
    let (code, said) = tool(&job, &["check", "--module", "acme"]);
    assert!(code == 0 && said.contains("cpi.json: 0 grants"), "{said}");
    let unnamed = "name one of `modules`: acme (`exec_path` data/JOB/bin/NAME, or `--module`)";
    let (code, said) = tool(&job, &["check"]);
    assert!(code == 1 && said.contains(unnamed), "{said}");
    job.call("info", json!([])).run().fails(CPI_ERROR, &["config:", unnamed]);

    let elsewhere = job.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(job.path("packages/acme-cpi"), elsewhere.join("acme-cpi")).unwrap();
    let call = ["call", "has_vm", "vm-1", "--module", "acme"];
    let (code, said) = tool(&job, &call);
    assert!(code != 0 && said.contains("acme.wasm"), "{said}");
    let (code, said) = tool(&job, &[&call[..], &["--packages", elsewhere.to_str().unwrap()]].concat());
    assert!(code == 0 && said.contains("true"), "{said}");
}
