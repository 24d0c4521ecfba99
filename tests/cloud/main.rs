//! `cloud --state DIR` serves the simulated cloud on loopback until it is killed. With
//! `--until-eof` it also ends when its stdin ends, so that it does not outlive its
//! parent. `DIR/cloud.json` contains everything that a client needs.
//!
//! `cloud --contents FILE` lists the resources of the tenant of such a file, one line
//! each, through the API of the cloud.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "prints where cloud.json is, or an error")]

use std::fs::{DirBuilder, OpenOptions, read, rename};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use tests::openstack::{Api, Gateway, Simulator};

const USAGE: &str = "usage: `cloud --state DIR [--until-eof]` or `cloud --contents FILE`";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["--state", directory] => serve(Path::new(directory), false),
        ["--state", directory, "--until-eof"] => serve(Path::new(directory), true),
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

fn serve(directory: &Path, until_eof: bool) -> Result<(), String> {
    let gateway = Gateway::start(Simulator::new());
    write(directory, &format!("{:#}\n", gateway.cloud()))
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
