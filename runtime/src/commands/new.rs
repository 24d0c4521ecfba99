//! `new`: writes the crate of a new guest. The crate builds, passes its tests, and
//! has needs and an example policy.
//!
//! The files are those of `new/template`. They are written only into a new or
//! empty directory, so that no file of the author is overwritten.

mod paths;
#[cfg(test)]
mod tests;

use crate::commands::report::Report;
use crate::failure::Failure;
use clap::Args;
use paths::{Paths, shell_quoted};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct NewOptions {
    /// Name of the guest: lower-case letters, digits and `-`
    name: String,
    /// Directory in which to create the guest's directory
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Directory guests/sdk of the wasm-cpi repository (default: searched in the parents of --dir and of the current directory)
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

/// The path of each file in the new crate, and its text.
const FILES: [(&str, &str); 11] = [
    ("Cargo.toml", include_str!("new/template/manifest.toml")),
    ("README.md", include_str!("new/template/README.md")),
    (".gitignore", include_str!("new/template/gitignore")),
    ("rustfmt.toml", include_str!("new/template/rustfmt.toml")),
    ("needs.json", include_str!("new/template/needs.json")),
    ("policy.json", include_str!("new/template/policy.json")),
    ("src/lib.rs", include_str!("new/template/src/lib.rs")),
    ("src/tests.rs", include_str!("new/template/src/tests.rs")),
    ("examples/cloud.rs", include_str!("new/template/examples/cloud.rs")),
    ("examples/policy.json", include_str!("new/template/examples/policy.json")),
    ("examples/properties.json", include_str!("new/template/examples/properties.json")),
];

const MAX_NAME: usize = 64;

pub fn new(options: &NewOptions) -> Result<Report, Failure> {
    let name = options.name.as_str();
    check_name(name)?;
    let paths = Paths::find(name, &options.dir, options.sdk.as_deref())?;
    check_is_empty(&paths.guest)?;
    let sdk = Value::from(paths.sdk_from_guest()?).to_string();
    let (repo, guest) = (shell_quoted(&paths.repo_from_guest()), shell_quoted(&paths.guest_from_repo()));
    for (file, template) in FILES {
        let text = template.replace("{{name}}", name).replace("{{library}}", &name.replace('-', "_"));
        let text = text.replace("{{sdk}}", &sdk);
        write(&paths.guest.join(file), &text.replace("{{repo}}", &repo).replace("{{guest}}", &guest))?;
    }
    // The first build then uses the versions that the SDK was tested with.
    if let Ok(lock) = fs::read_to_string(paths.sdk.join("../Cargo.lock")) {
        write(&paths.guest.join("Cargo.lock"), &lock)?;
    }
    Ok(Report::good(next_steps(name, &paths)))
}

fn next_steps(name: &str, paths: &Paths) -> String {
    let (directory, repo, guest) =
        (shell_quoted(&paths.guest), shell_quoted(&paths.repo), shell_quoted(&paths.guest_from_repo()));
    format!(
        "Guest {name} is written to {directory}.

Test it, without wasm:
  cd {directory} && cargo test

Build it:
  cd {directory} && cargo build --release --target wasm32-wasip2

If rustup cannot install that target, build it in {repo}:
  cargo xtask guest {guest}

Its README.md explains how to run it with the example cloud and with a real one.
"
    )
}

fn check_name(name: &str) -> Result<(), Failure> {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let rest = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if first && rest && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(Failure::request(format!(
        "`{}` is not a name for a guest; use a lower-case letter, followed by lower-case letters, digits and `-`, at most {MAX_NAME} characters",
        name.escape_debug()
    )))
}

/// Rejects a directory that has files, which new files could collide with.
fn check_is_empty(guest: &Path) -> Result<(), Failure> {
    let taken = |what: &str| Failure::request(format!("{} {what}; use another name or --dir", guest.display()));
    match fs::read_dir(guest).map(|mut entries| entries.next()) {
        Ok(None) => Ok(()),
        Ok(_) => Err(taken("exists and is not empty")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(taken("exists and is not a directory")),
        Err(error) => Err(taken(&format!("cannot be read ({error})"))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = File::create_new(path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| Failure::request(format!("{} cannot be written ({error})", path.display())))
}
