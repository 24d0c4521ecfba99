//! `cargo xtask release`: Directors and the CLI can read its tarball, it is reproducible,
//! and a CPI that is installed from it works.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;
use tests::process::{GUARD, run};
use tests::release::{job_source, render, yaml};
use tests::{dist, job};

/// The release, written twice: into two directories, at two times, with two umasks.
struct Twice {
    _dir: TempDir,
    tarballs: [PathBuf; 2],
    stderr: String,
}

fn release() -> &'static Twice {
    static RELEASE: OnceLock<Twice> = OnceLock::new();
    RELEASE.get_or_init(|| {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut stderr = String::new();
        let tarballs = [("one", "022"), ("two", "077")].map(|(name, umask)| {
            let mut xtask = shell();
            xtask.args(["-c", "umask $0 && exec cargo xtask release --no-build --out \"$1\"", umask]);
            xtask.arg(dir.path().join(name));
            let finished = run(&mut xtask, b"", std::time::Duration::from_secs(900));
            stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
            assert!(finished.status.success(), "{stderr}");
            PathBuf::from(String::from_utf8_lossy(&finished.stdout).trim())
        });
        Twice { _dir: dir, tarballs, stderr }
    })
}

/// Returns a shell in the repository, without the variables that cargo sets for the crate of this test.
fn shell() -> Command {
    let mut shell = Command::new("sh");
    shell.current_dir(dist::root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.ends_with("RUSTFLAGS") || text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
            shell.env_remove(name);
        }
    }
    shell
}

/// Runs a command that must succeed and returns its output.
fn succeed(command: &mut Command) -> String {
    let finished = run(command, b"", GUARD);
    let output = [finished.stdout, finished.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(finished.status.success(), "{command:?}: {output}");
    output
}

/// Unpacks a tarball as the Director does.
fn unpack(tarball: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    succeed(Command::new("tar").arg("-C").arg(to).arg("-xzf").arg(tarball));
}

fn digest(file: &Path) -> String {
    format!("sha256:{}", dist::sha256_of(file))
}

#[test]
fn the_same_input_makes_the_same_bytes() {
    let Twice { tarballs: [one, two], stderr, .. } = release();
    assert_eq!(one.file_name(), two.file_name());
    assert_eq!(dist::sha256_of(one), dist::sha256_of(two));
    assert!(stderr.contains(&format!("sha1: {}", digest(two))), "{stderr}");
    // The tarball contains no user and no time of this machine.
    let listed = succeed(Command::new("tar").args(["--numeric-owner", "-tvzf"]).arg(one));
    assert!(listed.lines().all(|line| line.contains(" 0/0 ") && line.contains(" 1970-01-01 ")), "{listed}");
}

#[test]
fn the_release_manifest_has_the_digests_and_fingerprints_of_jobs_and_packages() {
    let dir = tempfile::tempdir().unwrap();
    unpack(&release().tarballs[0], dir.path());
    let manifest = yaml(&dir.path().join("release.MF"));
    assert_eq!(manifest["name"], "wasm-cpi");
    // A Director refuses a known version with other values here, so that both depend on the content.
    let commit = manifest["commit_hash"].as_str().unwrap();
    assert!(manifest["version"].as_str().unwrap().contains(&format!("+dev.{commit}")), "{manifest}");
    assert_eq!((commit.len(), &manifest["uncommitted_changes"]), (10, &json!(false)));
    let names = |list: &str| -> Vec<String> {
        let items = manifest[list].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("jobs"), ["aws_cpi", "openstack_cpi", "wasm_cpi"]);
    assert_eq!(names("packages"), ["wasm-cpi", "wasm-cpi-guests"]);
    for list in ["jobs", "packages"] {
        for item in manifest[list].as_array().unwrap() {
            let name = item["name"].as_str().unwrap();
            let tgz = dir.path().join(list).join(format!("{name}.tgz"));
            assert_eq!(item["sha1"], digest(&tgz), "{name}");
            assert_eq!(item["version"], item["fingerprint"], "{name}");
            let to = dir.path().join("unpacked").join(list).join(name);
            unpack(&tgz, &to);
            assert_eq!(item["fingerprint"], fingerprint(&to), "{name}");
        }
    }
    let job = dir.path().join("unpacked/jobs/wasm_cpi");
    let spec = yaml(&job.join("job.MF"));
    assert_eq!(spec["name"], "wasm_cpi");
    assert_eq!(manifest["jobs"][2]["packages"], spec["packages"]);
    assert!(job.join("monit").is_file());
    for template in spec["templates"].as_object().unwrap().keys() {
        assert!(job.join("templates").join(template).is_file(), "{template}");
    }
}

/// Returns the fingerprint as the CLI computes it: paths, digests and modes of all files, in
/// order. The script `packaging` has no mode in it.
fn fingerprint(directory: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let mut files = BTreeMap::new();
    let mut below = vec![directory.to_owned()];
    while let Some(next) = below.pop() {
        for entry in fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                below.push(entry);
                continue;
            }
            let name = entry.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
            let executable = fs::metadata(&entry).unwrap().permissions().mode() & 0o111 != 0;
            let mode = match (name.as_str(), executable) {
                ("packaging", _) => "",
                (_, true) => "100755",
                (_, false) => "100644",
            };
            files.insert(name, format!("{}{mode}", digest(&entry)));
        }
    }
    let text: String = files.iter().map(|(name, rest)| format!("{name}{rest}")).collect();
    dist::sha256(format!("v2{text}").as_bytes())
}

#[test]
fn a_cpi_installed_from_the_tarball_runs_a_vm_lifecycle_with_only_path_set() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("vcap");
    unpack(&release().tarballs[1], &dir.path().join("release"));
    for package in ["wasm-cpi", "wasm-cpi-guests"] {
        let sources = dir.path().join("compile").join(package);
        unpack(&dir.path().join(format!("release/packages/{package}.tgz")), &sources);
        let target = root.join("packages").join(package);
        fs::create_dir_all(&target).unwrap();
        // As `create-env` compiles a package.
        let mut bash = Command::new("bash");
        bash.args(["-x", "packaging"]).current_dir(&sources).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        bash.env("BOSH_COMPILE_TARGET", &sources).env("BOSH_INSTALL_TARGET", &target);
        succeed(bash.env("BOSH_PACKAGE_NAME", package).env("BOSH_PACKAGES_DIR", root.join("packages")));
    }
    let source = dir.path().join("release/jobs/wasm_cpi");
    unpack(&dir.path().join("release/jobs/wasm_cpi.tgz"), &source);
    let manifest = json!({"guest": {"file": "probe.wasm"}, "agent": {"mbus": "nats://10.0.0.6:4222"}});
    let files = render(&source, &manifest).unwrap();
    assert_eq!(
        files,
        render(&job_source("wasm_cpi"), &manifest).unwrap(),
        "the packed job must be that of the repository"
    );
    for (path, text) in files.as_object().unwrap() {
        let to = root.join("jobs/wasm_cpi").join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        job::write(&to, text.as_str().unwrap().as_bytes());
        job::set_mode(&to, if path.starts_with("bin/") { 0o755 } else { 0o640 });
    }
    let image = dir.path().join("image");
    job::write(&image, b"a stemcell");

    let ask = |method: &str, arguments: Value| -> Value {
        let context = json!({"director_uuid": "d", "request_id": "cpi-123456", "vm": {"stemcell": {"api_version": 2}}});
        let request = json!({"method": method, "arguments": arguments, "context": context, "api_version": 2});
        let mut env = Command::new("env");
        env.args(["-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]).arg(root.join("jobs/wasm_cpi/bin/cpi")).current_dir("/");
        let finished = run(&mut env, request.to_string().as_bytes(), GUARD);
        assert!(finished.status.success(), "{}", String::from_utf8_lossy(&finished.stderr));
        let answer: Value = serde_json::from_slice(&finished.stdout).unwrap();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    };
    assert_eq!(ask("info", json!([])), json!({"api_version": 3, "stemcell_formats": ["probe-raw"]}));
    let stemcell = ask("create_stemcell", json!([image, {}]));
    let vm = ask("create_vm", json!(["agent-1", stemcell, {}, {}, [], {}]))[0].clone();
    assert_eq!(ask("has_vm", json!([vm])), true);
    let disk = ask("create_disk", json!([1024, {}, vm]));
    assert!(ask("attach_disk", json!([vm, disk])).is_string());
    for (method, arguments) in [
        ("detach_disk", json!([vm, disk])),
        ("delete_vm", json!([vm])),
        ("delete_disk", json!([disk])),
        ("delete_stemcell", json!([stemcell])),
    ] {
        assert_eq!(ask(method, arguments), Value::Null, "{method}");
    }
    assert!(root.join("data/wasm_cpi/cache").is_dir(), "the first call must prepare the guest");
}

#[test]
fn bosh_can_create_a_release_from_the_directory() {
    release();
    let directory = dist::root().join("release");
    assert_eq!(yaml(&directory.join("config/final.yml"))["name"], "wasm-cpi");
    assert!(directory.join("src").is_dir(), "the CLI requires this directory, although it is empty");
    // `bosh` deletes blobs that are not listed, and downloads those with an `object_id`.
    let index = yaml(&directory.join("config/blobs.yml"));
    for (path, blob) in index.as_object().unwrap() {
        let file = directory.join("blobs").join(path);
        assert_eq!((&blob["sha"], blob.get("object_id")), (&json!(digest(&file)), None), "{path}");
        assert_eq!(blob["size"], fs::metadata(&file).unwrap().len(), "{path}");
    }
    for package in ["wasm-cpi", "wasm-cpi-guests"] {
        let spec = yaml(&directory.join("packages").join(package).join("spec"));
        assert_eq!(spec["name"], package);
        for pattern in spec["files"].as_array().unwrap() {
            let pattern = pattern.as_str().unwrap().trim_end_matches('*');
            assert!(index.as_object().unwrap().keys().any(|path| path.starts_with(pattern)), "{pattern}");
        }
    }
    let ignored = Command::new("git")
        .current_dir(dist::root())
        .args(["status", "--porcelain", "--", "release/blobs", "release/config/blobs.yml"])
        .output();
    assert!(ignored.is_ok_and(|output| output.stdout.is_empty()), "git must ignore the files that are built");
}
