//! The commands that the author of a guest runs, in the order of docs/writing-guests.md:
//! `wasm-cpi new`, native tests, a build, a job with a policy, calls. The cloud
//! is the example server of the new guest, on this machine.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tests::process::{Finished, GUARD, run};
use tests::{NOT_IMPLEMENTED, dist};

/// Long enough to build std as well, if the target directory is empty.
const BUILD_TIMEOUT: Duration = Duration::from_secs(1200);

const NAME: &str = "my-cloud";
const TOKEN: &str = "a-token-for-the-host-alone";

#[test]
fn a_new_guest_can_be_built_installed_and_called_as_the_readme_says() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let guest = new(&dir);
    succeed(cargo(&guest).args(["fmt", "--check"]));
    succeed(cargo(&guest).args(["clippy", "--all-targets", "--", "--deny", "warnings"]));
    succeed(cargo(&guest).arg("test"));

    let built = succeed(xtask().arg("guest").arg(&guest));
    let wasm = guest.join("target/wasm32-wasip2/release/my_cloud.wasm");
    assert_eq!(built.trim_end(), wasm.to_str().unwrap());

    let mut cloud = Cloud::start(&guest);
    let job = dir.path().join("job");
    let properties = json!({"endpoint": cloud.endpoint, "token": TOKEN}).to_string();
    let mut lay_out = xtask();
    lay_out.arg("job").arg(&job).arg("--guest").arg(&wasm).arg("--policy").arg(guest.join("examples/policy.json"));
    succeed(lay_out.args(["--properties", &properties, "--allow-local", "--no-build"]));

    let network =
        json!({"type": "manual", "ip": "10.0.0.9", "netmask": "255.255.255.0", "default": ["dns", "gateway"]});
    let networks = json!({"default": network});
    let created = call(&job, "create_vm", json!(["agent-1", "image-1", {"size": "small"}, networks, [], {}]));
    assert_eq!(created["error"], Value::Null, "{created}");
    assert_eq!((&created["result"][0], &created["result"][1]["default"]["ip"]), (&json!("s-1"), &json!("10.0.0.9")));
    for (method, result) in [("has_vm", json!(true)), ("delete_vm", Value::Null), ("has_vm", json!(false))] {
        let response = call(&job, method, json!(["s-1"]));
        assert_eq!((&response["result"], &response["error"]), (&result, &Value::Null), "{method}: {response}");
    }
    assert_eq!(call(&job, "create_disk", json!([1024, {}, null]))["error"]["type"], NOT_IMPLEMENTED);

    let seen = cloud.stop();
    let (_, post) = seen.split_once("POST /servers HTTP/1.1\n").expect(&seen);
    let mut lines = post.lines();
    assert_eq!(lines.next(), Some(format!("authorization: Bearer {TOKEN}").as_str()));
    let body: Value = serde_json::from_str(lines.next().unwrap_or_default()).expect(&seen);
    let settings: Value = serde_json::from_str(body["user_data"].as_str().unwrap()).expect(&seen);
    assert_eq!((&body["size"], &settings["agent_id"]), (&json!("small"), &json!("agent-1")));
    assert_eq!((&settings["mbus"], &settings["vm"]["name"]), (&json!("nats://127.0.0.1:4222"), &json!("vm-agent-1")));
    assert_eq!(settings["networks"]["default"]["ip"], "10.0.0.9");
}

#[test]
fn an_existing_guest_is_not_overwritten() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let guest = new(&dir);
    std::fs::write(guest.join("src/lib.rs"), "mine").unwrap();
    let again = run(Command::new(dist::tool()).args(["new", NAME, "--dir"]).arg(dir.path()), b"", GUARD);
    let stderr = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && stderr.contains("exists and is not empty"), "{stderr}");
    assert_eq!(std::fs::read_to_string(guest.join("src/lib.rs")).unwrap(), "mine");
}

fn new(dir: &TempDir) -> PathBuf {
    succeed(Command::new(dist::tool()).args(["new", NAME, "--dir"]).arg(dir.path()).current_dir(dist::root()));
    dir.path().canonicalize().unwrap().join(NAME)
}

/// Uses the target directory of the guests, which already has the dependencies of the SDK.
fn cargo(guest: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(guest);
    for (name, _) in std::env::vars_os() {
        // These variables are for the crate of this test, not for the new guest.
        let text = name.to_string_lossy();
        if text.ends_with("RUSTFLAGS") || text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
            cargo.env_remove(name);
        }
    }
    cargo.env("CARGO_TARGET_DIR", dist::root().join("guests/target"));
    cargo
}

fn xtask() -> Command {
    let mut xtask = cargo(dist::root());
    xtask.env_remove("CARGO_TARGET_DIR").arg("xtask");
    xtask
}

/// Runs a command that must succeed and returns its stdout.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let Finished { stdout, stderr, status, .. } = run(command, b"", BUILD_TIMEOUT);
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{command:?}: {status}\n{stdout}{}", String::from_utf8_lossy(&stderr));
    stdout
}

/// Calls the script of the job with an empty environment and returns the response.
#[track_caller]
fn call(job: &Path, method: &str, arguments: Value) -> Value {
    let context = json!({"director_uuid": "d", "request_id": "cpi-1", "vm": {"stemcell": {"api_version": 2}}});
    let request = json!({"method": method, "arguments": arguments, "context": context, "api_version": 2});
    let cpi = job.join("bin/cpi");
    let finished = run(Command::new(cpi).env_clear().current_dir("/"), request.to_string().as_bytes(), GUARD);
    let output = [finished.stdout.as_slice(), &finished.stderr].map(String::from_utf8_lossy).concat();
    assert!(finished.status.success() && !output.contains(TOKEN), "{output}");
    serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// The example server of the new guest, as a process.
struct Cloud {
    process: Child,
    output: BufReader<ChildStdout>,
    endpoint: String,
}

impl Cloud {
    fn start(guest: &Path) -> Cloud {
        let mut command = cargo(guest);
        command.args(["run", "--quiet", "--example", "cloud", "--", "127.0.0.1:0"]);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let endpoint = first.trim_end().strip_prefix("listening at ").expect(&first).to_owned();
        Cloud { process, output, endpoint }
    }

    /// Stops the process and returns everything that it printed.
    fn stop(&mut self) -> String {
        self.process.kill().unwrap();
        let mut seen = String::new();
        self.output.read_to_string(&mut seen).unwrap();
        seen
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
