//! botocore drives the simulator, and moto is compared with it; see `tests/aws/README.md`.

use super::moto;
use std::path::PathBuf;
use std::process::Output;
use tests::aws::{Gateway, Simulator};
use tests::dist;

/// Runs a script of `tests/aws`, unless there is no interpreter for it.
fn run(script: &str, arguments: &[PathBuf]) -> Option<Output> {
    let output = moto::script(script)?.args(arguments).output();
    Some(output.unwrap_or_else(|error| panic!("{error}")))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_table_of_operations_is_that_of_botocores_models() {
    let Some(output) = run("models.py", &[]) else { return };
    assert!(output.status.success(), "{}", text(&output));
    let path = dist::root().join("tests/aws/models.json");
    let written = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(output.stdout == written, "models.json is out of date: write it with tests/aws/models.py");
}

#[test]
fn botocore_and_moto_agree_with_the_simulator() {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let lenient = Simulator::new();
    lenient.allow_unsigned_payload();
    let clouds = [Gateway::secure(Simulator::new()).cloud(), Gateway::start(lenient).cloud()];
    let files: Vec<PathBuf> = ["strict.json", "lenient.json"].iter().map(|name| dir.path().join(name)).collect();
    for (file, cloud) in files.iter().zip(clouds) {
        std::fs::write(file, cloud.to_string()).unwrap_or_else(|error| panic!("{error}"));
    }
    let Some(output) = run("second_opinion.py", &files) else { return };
    assert!(output.status.success(), "{}", text(&output));
}
