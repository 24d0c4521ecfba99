//! `cargo xtask job OUT`: lays out a CPI job as a Director finds it.
//!
//! `OUT/bin/cpi` is all that a client needs to know. The rest lies beside it and
//! is found from there, so that the directory can be moved or linked to. A job
//! that exists keeps what its operator wrote; only programs, guest and the
//! guest's pin are renewed.

mod templates;

use crate::build::{self, HOT, TOOL};
use crate::command;
use crate::files;
use crate::repo::Repo;
use crate::steps::Steps;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn run(repo: &Repo, out: &Path, guest: Option<&Path>) -> Result<()> {
    let mut steps = Steps::new();
    build::everything(repo, &mut steps)?;
    steps.need("lay out the job", || lay_out(repo, out, guest))?;
    eprintln!("\nThe job is ready: a Director or the CLI can be pointed at {}/bin/cpi", out.display());
    eprintln!("Its configuration: {0}/config/cpi.json and {0}/config/policy.json", out.display());
    let request = r#"{"method":"info","arguments":[],"context":{}}"#;
    eprintln!("Try it: printf '{request}' | {}/bin/cpi", out.display());
    Ok(())
}

/// Lays the job out from what `build` left in `target/dist`, and prepares its guest.
pub(crate) fn lay_out(repo: &Repo, out: &Path, guest: Option<&Path>) -> Result<()> {
    let programs = repo.dist();
    let guest = guest.map_or_else(|| programs.join("probe.wasm"), Path::to_path_buf);
    write(&programs, out, &guest)?;
    let tool = out.join("packages/wasm-cpi").join(TOOL);
    command::run(command::new(&tool).arg("prepare").arg("--config").arg(out.join("config/cpi.json")))
        .context("the job is laid out, but its guest could not be prepared")
}

fn write(programs: &Path, out: &Path, guest: &Path) -> Result<()> {
    let wasm = fs::read(guest).with_context(|| format!("the guest {} cannot be read", guest.display()))?;
    let Some(name) = guest.file_name().and_then(|name| name.to_str()) else {
        bail!("the guest {} has no file name in UTF-8", guest.display());
    };
    for (directory, mode) in [
        ("bin", 0o755),
        ("config", 0o755),
        ("packages/wasm-cpi", 0o755),
        ("packages/guest", 0o755),
        // Holds machine code that is run as it is: nobody else may write there.
        ("cache", 0o700),
    ] {
        files::directory(&out.join(directory), mode)?;
    }
    // The hot binary runs the tool, where the guest is not prepared yet, and looks for it beside itself.
    for program in [HOT, TOOL] {
        files::copy(&programs.join(program), &out.join("packages/wasm-cpi").join(program), 0o755)?;
    }
    files::copy(guest, &out.join("packages/guest").join(name), 0o644)?;
    files::write(&out.join("bin/cpi"), templates::SCRIPT, 0o755)?;
    let policy = out.join("config/policy.json");
    if !policy.exists() {
        files::write(&policy, &pretty(&templates::policy())?, 0o640)?;
    }
    let pin = templates::guest(&format!("../packages/guest/{name}"), &sha256(&wasm));
    configure(out.join("config/cpi.json"), pin)
}

fn configure(path: PathBuf, pin: Value) -> Result<()> {
    let config = match fs::read_to_string(&path) {
        Ok(text) => {
            let mut config: Value = serde_json::from_str(&text)
                .with_context(|| format!("{} is not JSON: mend or remove it", path.display()))?;
            match config.as_object_mut() {
                Some(keys) => keys.insert("guest".to_owned(), pin),
                None => bail!("{} is not a JSON object: mend or remove it", path.display()),
            };
            config
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => templates::config(pin),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    files::write(&path, &pretty(&config)?, 0o600)
}

fn pretty(value: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
