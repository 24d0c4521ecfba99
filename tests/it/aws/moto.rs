//! The Python programs of `tests/aws`: botocore, and moto with authentication.

use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tests::{dist, skip};

/// The environment variable that names a Python interpreter with botocore and moto;
/// `cargo xtask test` sets it.
const VARIABLE: &str = "WASM_CPI_BOTOCORE";

const TIME_TO_START: Duration = Duration::from_secs(120);

/// A moto that runs until this value is dropped.
pub(super) struct Moto {
    pub(super) cloud: Value,
    process: Child,
    _dir: tempfile::TempDir,
}

/// Returns a command that runs a script of `tests/aws`. Returns `None` and reports a skip if there is no
/// interpreter.
pub(super) fn script(name: &str) -> Option<Command> {
    let Some(python) = std::env::var_os(VARIABLE) else {
        skip("botocore", "no Python interpreter with botocore and moto is named");
        return None;
    };
    let mut command = Command::new(python);
    // Without -B, Python would write bytecode into the repository.
    command.args([OsString::from("-B"), path(name).into()]);
    Some(command)
}

fn path(name: &str) -> PathBuf {
    dist::root().join("tests/aws").join(name)
}

impl Moto {
    /// Starts moto. Returns `None` and reports a skip if there is no interpreter with it.
    pub(super) fn start() -> Option<Moto> {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let file = dir.path().join("cloud.json");
        let process = script("moto_cloud.py")?.arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut process = process.unwrap_or_else(|error| panic!("moto_cloud.py: {error}"));
        let started = Instant::now();
        loop {
            if let Some(cloud) = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
                return Some(Moto { cloud, process, _dir: dir });
            }
            let ended = process.try_wait().unwrap_or_else(|error| panic!("moto_cloud.py: {error}"));
            assert!(ended.is_none() && started.elapsed() < TIME_TO_START, "moto did not start: {ended:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
