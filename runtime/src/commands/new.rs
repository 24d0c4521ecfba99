//! `new`: a crate to begin a guest with, which builds, passes its tests and has
//! its needs and an example grant.
//!
//! The files are those of `new/template`. They are written into a directory
//! that is new or empty, so that nothing of the author's is ever overwritten.

mod places;
#[cfg(test)]
mod tests;

use crate::commands::cli::Report;
use crate::failure::Failure;
use clap::Args;
use places::{Places, shown};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct NewOptions {
    /// Name of the guest: lower-case letters, digits and `-`
    name: String,
    /// Where to make its directory
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The SDK: guests/sdk of the wasm-cpi repository (default: found above --dir or here)
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

/// Where each file goes in the new crate, and its text.
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
    let places = Places::find(name, &options.dir, options.sdk.as_deref())?;
    check_free(&places.guest)?;
    let sdk = Value::from(places.sdk_from_guest()?).to_string();
    let (repo, guest) = (shown(&places.repo_from_guest()), shown(&places.guest_from_repo()));
    for (file, template) in FILES {
        let text = template.replace("{{name}}", name).replace("{{library}}", &name.replace('-', "_"));
        let text = text.replace("{{sdk}}", &sdk);
        write(&places.guest.join(file), &text.replace("{{repo}}", &repo).replace("{{guest}}", &guest))?;
    }
    // The versions that the SDK was tested with: nothing newer is fetched for the first build.
    if let Ok(lock) = fs::read_to_string(places.sdk.join("../Cargo.lock")) {
        write(&places.guest.join("Cargo.lock"), &lock)?;
    }
    Ok(Report::good(next_steps(name, &places)))
}

fn next_steps(name: &str, places: &Places) -> String {
    let (directory, repo, guest) = (shown(&places.guest), shown(&places.repo), shown(&places.guest_from_repo()));
    format!(
        "{name}: written to {directory}

Test it natively:
  cd {directory} && cargo test

Build it:
  cd {directory} && cargo build --release --target wasm32-wasip2

Where rustup cannot install that target, in {repo}:
  cargo xtask guest {guest}

README.md in it says how to run it, against a cloud in memory and for real.
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
        "`{}` is no name for a guest; take a lower-case letter, then lower-case letters, digits and `-`, {MAX_NAME} in all",
        name.escape_debug()
    )))
}

/// Refuses whatever a new file could collide with.
fn check_free(guest: &Path) -> Result<(), Failure> {
    let taken = |what: &str| Failure::request(format!("{} {what}; take another name or --dir", guest.display()));
    match fs::read_dir(guest).map(|mut entries| entries.next()) {
        Ok(None) => Ok(()),
        Ok(_) => Err(taken("exists and is not empty")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(taken("exists and is no directory")),
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
