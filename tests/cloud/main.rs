//! `cloud --state DIR`: the simulated cloud on loopback, until it is killed.
//! What a client needs to know stands in DIR/cloud.json.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "says where it listens, or why it does not")]

use std::fs::{DirBuilder, OpenOptions, rename};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use tests::openstack::{Gateway, Simulator};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [flag, directory] = words.as_slice() else {
        eprintln!("cloud: use it as `cloud --state DIR`");
        return ExitCode::FAILURE;
    };
    if flag != "--state" {
        eprintln!("cloud: `{flag}` is not known; use it as `cloud --state DIR`");
        return ExitCode::FAILURE;
    }
    let gateway = Gateway::start(Simulator::new());
    let directory = Path::new(directory);
    if let Err(error) = write(directory, &format!("{:#}\n", gateway.cloud())) {
        eprintln!("cloud: {} cannot be written: {error}", directory.join("cloud.json").display());
        return ExitCode::FAILURE;
    }
    println!("cloud.json is in {}", directory.display());
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
