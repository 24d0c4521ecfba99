//! `cloud --aws`: the program that serves the simulator.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tests::aws::{Client, Service};

#[test]
fn the_program_serves_the_cloud_of_its_file_with_tls() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloud"));
    let command = command.args(["--aws", "--state"]).arg(dir.path()).arg("--until-eof");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{error}"));
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let cloud: Value = std::fs::read(dir.path().join("cloud.json"))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let client = Client::new(&cloud);
    let (request, body) = client.form(Service::Ec2, "DescribeInstances", &[]);
    let answer = client.send(Service::Ec2, &request, &body);
    drop(child.stdin.take());
    let ended = child.wait();
    assert_eq!(answer.map(|answer| answer.status).map_err(|error| error.to_string()), Ok(200), "{line}");
    assert!(ended.is_ok_and(|status| status.success()), "the program ends with its stdin");
}
