//! `cloud --state DIR`: the simulated cloud on loopback, until it is killed; with
//! `--until-eof` also until its stdin ends, so that it never outlives its parent.
//! What a client needs to know stands in DIR/cloud.json.
//!
//! `cloud --contents FILE`: what the tenant of such a file has in its cloud, one
//! line each, asked of the cloud's own API.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "says where it listens, or why it does not")]

use std::fs::{DirBuilder, OpenOptions, read, rename};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use tests::openstack::{Api, Gateway, Simulator};

const USAGE: &str = "use it as `cloud --state DIR [--until-eof]` or `cloud --contents FILE`";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--state", directory] => serve(Path::new(directory), false),
        ["--state", directory, "--until-eof"] => serve(Path::new(directory), true),
        ["--contents", file] => contents(Path::new(file)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("cloud: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn serve(directory: &Path, until_eof: bool) -> Result<(), String> {
    let gateway = Gateway::start(Simulator::new());
    write(directory, &format!("{:#}\n", gateway.cloud()))
        .map_err(|error| format!("{} cannot be written: {error}", directory.join("cloud.json").display()))?;
    println!("cloud.json is in {}", directory.display());
    if until_eof {
        let ended = io::copy(&mut io::stdin(), &mut io::sink());
        return ended.map(drop).map_err(|error| format!("stdin: {error}"));
    }
    loop {
        std::thread::park();
    }
}

/// All at once: who finds the file, finds it whole.
fn write(directory: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let half = directory.join(".cloud.json.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
    file.write_all(text.as_bytes())?;
    rename(half, directory.join("cloud.json"))
}

fn contents(file: &Path) -> Result<(), String> {
    let text = read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let cloud = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    for line in Api::tenant(&cloud).contents().0 {
        println!("{line}");
    }
    Ok(())
}
