//! `cloud`: the program that serves the simulator.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use tests::openstack::Api;

#[test]
fn the_program_serves_the_cloud_of_its_file_which_only_its_user_can_read() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let state = dir.path().join("state");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloud"));
    let child = command.arg("--state").arg(&state).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{error}"));
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let file = state.join("cloud.json");
    let mode = file.metadata().map(|metadata| metadata.permissions().mode() & 0o777);
    let cloud: Value =
        std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let contents = std::panic::catch_unwind(|| Api::tenant(&cloud).contents());
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(mode.ok(), Some(0o600));
    assert_eq!(contents.map(|contents| contents.count("floating")).ok(), Some(1), "{line}");
}

#[test]
fn the_program_prints_its_usage_if_arguments_are_wrong() {
    for arguments in [&[][..], &["--state"], &["--dir", "x"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_cloud")).args(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("{error}"));
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("cloud [--aws] --state DIR"), "{arguments:?}");
    }
}
