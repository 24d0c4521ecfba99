//! `cloud --state DIR` serves the simulated OpenStack on loopback until it is killed, and
//! `cloud --aws --state DIR` the simulated AWS, with TLS. With `--until-eof` it also ends when
//! its stdin ends, so that it does not outlive its parent. `DIR/cloud.json` contains
//! everything that a client needs.
//!
//! `cloud --contents FILE` lists the resources of the tenant of such a file, one line
//! each, through the API of the cloud.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "prints where cloud.json is, or an error")]

use serde_json::Value;
use std::fs::{DirBuilder, OpenOptions, read, rename};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use tests::openstack::Api;
use tests::{aws, openstack};

const USAGE: &str = "usage: `cloud [--aws] --state DIR [--until-eof]` or `cloud --contents FILE`";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["--aws", "--state", directory, rest @ ..] if is_end(rest) => {
            serve(&aws::Gateway::secure(aws::Simulator::new()).cloud(), Path::new(directory), !rest.is_empty())
        }
        ["--state", directory, rest @ ..] if is_end(rest) => {
            let gateway = openstack::Gateway::start(openstack::Simulator::new());
            serve(&gateway.cloud(), Path::new(directory), !rest.is_empty())
        }
        ["--contents", file] => print_contents(Path::new(file)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cloud: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true if the arguments after the directory are complete.
fn is_end(rest: &[&str]) -> bool {
    matches!(rest, [] | ["--until-eof"])
}

/// Describes the cloud in the directory, and waits. Threads of the gateway serve it.
fn serve(cloud: &Value, directory: &Path, until_eof: bool) -> Result<(), String> {
    write(directory, &format!("{cloud:#}\n"))
        .map_err(|error| format!("cannot write {}: {error}", directory.join("cloud.json").display()))?;
    println!("cloud.json is in {}", directory.display());
    if until_eof {
        let read = io::copy(&mut io::stdin(), &mut io::sink());
        return read.map(drop).map_err(|error| format!("cannot read stdin: {error}"));
    }
    loop {
        std::thread::park();
    }
}

/// Writes cloud.json by renaming a complete file, so that readers never see a part.
fn write(directory: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let new = directory.join(".cloud.json.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    rename(new, directory.join("cloud.json"))
}

fn print_contents(file: &Path) -> Result<(), String> {
    let text = read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let cloud = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    for line in Api::tenant(&cloud).contents().0 {
        println!("{line}");
    }
    Ok(())
}
