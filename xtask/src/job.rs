//! `cargo xtask job OUT`: lays out a CPI job as a Director finds it.
//!
//! The release's job `wasm_cpi` is rendered as if it were deployed: OUT is a BOSH
//! installation, with `jobs`, `packages` and `data`. `OUT/bin/cpi` is all that a
//! client needs to know. The rest is found from there, so that the directory can
//! be moved or linked to. A job that exists keeps what its operator wrote, unless
//! it is given anew; only programs, script, guest and the guest's pin are renewed.

mod given;
mod manifest;

pub(crate) use given::Given;

use crate::arguments::Job;
use crate::build::{self, GUESTS, HOT, TOOL};
use crate::command;
use crate::files;
use crate::release::render;
use crate::repo::Repo;
use crate::steps::Steps;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a job's configuration and policy lie in it.
const CONFIG: &str = "config/cpi.json";
const POLICY: &str = "config/policy.json";

/// The job itself, of which `OUT/bin` and `OUT/config` are parts.
const JOB: &str = "jobs/wasm_cpi";

/// The request to try first.
const INFO: &str = r#"{"method":"info","arguments":[],"context":{}}"#;

pub(crate) fn run(repo: &Repo, job: &Job) -> Result<()> {
    let given = Given::new(repo, job)?;
    let mut steps = Steps::new();
    if !job.no_build {
        build::everything(repo, &mut steps)?;
    }
    steps.need("lay out the job", || lay_out(repo, job, &given))?;
    let out = job.out.display();
    let checked = command::run(tool(&job.out, "check").arg("--config").arg(job.out.join(CONFIG)));
    let state = if checked.is_ok() { "ready" } else { "laid out, and ready once these problems are solved" };
    eprintln!("\nThe job is {state}: a Director or the CLI can be pointed at {out}/bin/cpi");
    eprintln!("Its configuration: {out}/config/cpi.json and {out}/config/policy.json");
    eprintln!("For another user, such as a Director's vcap: chown -R USER {out}/jobs {out}/data");
    match job.cloud {
        None => eprintln!("Try it: printf '{INFO}' | {out}/bin/cpi"),
        Some(_) => {
            eprintln!(
                "Try it: {out}/packages/wasm-cpi/{TOOL} call create_disk 1024 '{{}}' null --config {out}/{CONFIG}"
            );
        }
    }
    Ok(())
}

/// Lays the job out from what `build` left in `target/dist`, and prepares its guest.
pub(crate) fn lay_out(repo: &Repo, job: &Job, given: &Given) -> Result<()> {
    render::setup()?;
    write(repo, &repo.dist(), job, given)?;
    command::run(tool(&job.out, "prepare").arg("--config").arg(job.out.join(CONFIG)))
        .context("the job is laid out, but its guest could not be prepared")
}

fn tool(out: &Path, subcommand: &str) -> Command {
    let mut tool = command::new(out.join("packages/wasm-cpi").join(TOOL));
    tool.arg(subcommand);
    tool
}

/// A guest of the repository is meant by its name, any other by its path.
fn guest(programs: &Path, job: &Job) -> PathBuf {
    let path = job.guest.as_deref().unwrap_or(Path::new(GUESTS[0]));
    match GUESTS.into_iter().find(|name| path == Path::new(name)) {
        Some(name) => programs.join(format!("{name}.wasm")),
        None => path.to_path_buf(),
    }
}

fn write(repo: &Repo, programs: &Path, job: &Job, given: &Given) -> Result<()> {
    let out = &job.out;
    let guest = guest(programs, job);
    let wasm = fs::read(&guest).with_context(|| format!("the guest {} cannot be read", guest.display()))?;
    let Some(name) = guest.file_name().and_then(|name| name.to_str()) else {
        bail!("the guest {} has no file name in UTF-8", guest.display());
    };
    let existing = existing(&out.join(CONFIG))?;
    let guest_section = manifest::guest(name, &files::sha256(&wasm));
    let rendered = render::job(repo, &repo.release().join(JOB), &manifest::properties(&guest_section, given))?;
    for directory in ["jobs/wasm_cpi/bin", "jobs/wasm_cpi/config", "packages/wasm-cpi", "packages/guest"] {
        files::directory(&out.join(directory), 0o755)?;
    }
    // Holds machine code that is run as it is: nobody else may write there.
    files::directory(&out.join("data/wasm_cpi/cache"), 0o755)?;
    for part in ["bin", "config"] {
        link(&Path::new(JOB).join(part), &out.join(part))?;
    }
    // The hot binary runs the tool, where the guest is not prepared yet, and looks for it beside itself.
    for program in [HOT, TOOL] {
        files::copy(&programs.join(program), &out.join("packages/wasm-cpi").join(program), 0o755)?;
    }
    files::copy(&guest, &out.join("packages/guest").join(name), 0o644)?;
    if let Some(text) = &given.preset {
        files::write(&out.join("packages/guest").join(manifest::PRESET), text, 0o644)?;
    }
    // No pre-start: it looks for what an agent made, and `lay_out` prepares the guest.
    files::write(&out.join("bin/cpi"), rendered.file("bin/cpi")?, 0o755)?;
    let policy = out.join(POLICY);
    if given.policy.is_some() || !policy.exists() {
        files::write(&policy, rendered.file(POLICY)?, 0o640)?;
    }
    let config = match existing {
        None => rendered.file(CONFIG)?.to_owned(),
        Some(config) => serde_json::to_string_pretty(&renewed(config, guest_section, given))? + "\n",
    };
    files::write(&out.join(CONFIG), &config, 0o600)
}

/// Where it is already, nothing is done.
fn link(to: &Path, at: &Path) -> Result<()> {
    if fs::read_link(at).is_ok_and(|there| there == to) {
        return Ok(());
    }
    symlink(to, at).with_context(|| format!("{} is in the way: remove it", at.display()))
}

/// The operator's configuration, with what is given anew.
fn renewed(mut config: Map<String, Value>, guest: Value, given: &Given) -> Map<String, Value> {
    config.insert("guest".to_owned(), guest);
    if let Some(properties) = &given.properties {
        config.insert("properties".to_owned(), properties.clone());
    }
    if given.allow_local {
        config.insert("allow_local".to_owned(), true.into());
    }
    config
}

/// The configuration of a job that exists.
fn existing(path: &Path) -> Result<Option<Map<String, Value>>> {
    if !path.exists() {
        return Ok(None);
    }
    match serde_json::from_str(&read(path)?) {
        Ok(Value::Object(config)) => Ok(Some(config)),
        Ok(_) => bail!("{} is not a JSON object: mend or remove it", path.display()),
        Err(error) => bail!("{} is not JSON ({error}): mend or remove it", path.display()),
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

#[cfg(test)]
mod tests;
