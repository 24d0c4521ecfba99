//! The path of a guest's author, command by command as the README has it:
//! `wasm-cpi new`, native tests, a build, a job with a policy, calls. The cloud
//! is the example that the new guest brings along, on this machine.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tests::process::{Finished, GUARD, run};
use tests::{NOT_IMPLEMENTED, dist};

/// With an empty target directory std is built, too.
const BUILD: Duration = Duration::from_secs(1200);

const NAME: &str = "my-cloud";
const TOKEN: &str = "a-token-for-the-host-alone";

#[test]
fn from_a_new_guest_to_a_vm_in_its_cloud() {
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
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("exists and is not empty"), "{said}");
    assert_eq!(std::fs::read_to_string(guest.join("src/lib.rs")).unwrap(), "mine");
}

fn new(dir: &TempDir) -> PathBuf {
    succeed(Command::new(dist::tool()).args(["new", NAME, "--dir"]).arg(dir.path()).current_dir(dist::root()));
    dir.path().canonicalize().unwrap().join(NAME)
}

/// Builds into the guests' target directory: what the SDK depends on is there.
fn cargo(guest: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(guest);
    for (name, _) in std::env::vars_os() {
        // Meant for the crate that this test is in.
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

/// What a command writes to stdout.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let Finished { stdout, stderr, status, .. } = run(command, b"", BUILD);
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{command:?}: {status}\n{stdout}{}", String::from_utf8_lossy(&stderr));
    stdout
}

/// Through the job's own script, with an empty environment.
#[track_caller]
fn call(job: &Path, method: &str, arguments: Value) -> Value {
    let context = json!({"director_uuid": "d", "request_id": "cpi-1", "vm": {"stemcell": {"api_version": 2}}});
    let request = json!({"method": method, "arguments": arguments, "context": context, "api_version": 2});
    let cpi = job.join("bin/cpi");
    let finished = run(Command::new(cpi).env_clear().current_dir("/"), request.to_string().as_bytes(), GUARD);
    let said = [finished.stdout.as_slice(), &finished.stderr].map(String::from_utf8_lossy).concat();
    assert!(finished.status.success() && !said.contains(TOKEN), "{said}");
    serde_json::from_slice(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The new guest's example.
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

    /// All that it showed.
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
