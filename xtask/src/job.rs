//! `cargo xtask job OUT`: lays out a CPI job as BOSH installs it.
//!
//! The release's job `wasm_cpi` is rendered as for a deployment: OUT is a BOSH
//! installation, with `jobs`, `packages` and `data`. A client needs only the path
//! `OUT/bin/cpi`. All other files are found relative to it, so that the directory can
//! be moved or linked to. In a job that exists, programs, script, guest and the guest's
//! pin are replaced. The config changes where an option gives new values, and the policy only
//! with `--replace`, because operators edit it.

mod inputs;
mod manifest;
mod presets;

pub(crate) use inputs::JobInputs;

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

/// The configuration and the policy, relative to OUT.
const CONFIG: &str = "config/cpi.json";
const POLICY: &str = "config/policy.json";

/// The directory of the job, relative to OUT; `OUT/bin` and `OUT/config` are links into it.
const JOB: &str = "jobs/wasm_cpi";

/// The request of the printed example.
const INFO: &str = r#"{"method":"info","arguments":[],"context":{}}"#;

pub(crate) fn run(repo: &Repo, job: &Job) -> Result<()> {
    let inputs = JobInputs::new(repo, job)?;
    let mut steps = Steps::new();
    if !job.no_build {
        build::build_everything(repo, &mut steps)?;
    }
    steps.need("lay out the job", || lay_out(repo, job, &inputs))?;
    let out = job.out.display();
    let checked = command::run(tool(&job.out, "check").arg("--config").arg(job.out.join(CONFIG)));
    match checked {
        Ok(()) => eprintln!("\nThe job is ready: a Director or the CLI can run {out}/bin/cpi"),
        Err(_) => eprintln!("\nThe job is laid out; fix the problems above before you run {out}/bin/cpi"),
    }
    eprintln!("Its configuration: {out}/config/cpi.json and {out}/config/policy.json");
    eprintln!("To run it as another user, for example a Director's vcap: chown -R USER {out}/jobs {out}/data");
    match job.cloud {
        None => eprintln!("To try it: printf '{INFO}' | {out}/bin/cpi"),
        Some(_) => {
            eprintln!(
                "To try it: {out}/packages/wasm-cpi/{TOOL} call create_disk 1024 '{{}}' null --config {out}/{CONFIG}"
            );
        }
    }
    Ok(())
}

/// Lays out the job with the programs in `target/dist`, and prepares its guest.
pub(crate) fn lay_out(repo: &Repo, job: &Job, inputs: &JobInputs) -> Result<()> {
    render::setup()?;
    if let Some(kept) = write(repo, &repo.dist(), job, inputs)? {
        eprintln!("{kept}");
    }
    command::run(tool(&job.out, "prepare").arg("--config").arg(job.out.join(CONFIG)))
        .context("the job is laid out, but its guest could not be prepared; fix the problem above and run this again")
}

fn tool(out: &Path, subcommand: &str) -> Command {
    let mut tool = command::new(out.join("packages/wasm-cpi").join(TOOL));
    tool.arg(subcommand);
    tool
}

/// Returns the guest's file. A guest of the repository is given by its name, any other by its path.
fn guest(programs: &Path, job: &Job) -> PathBuf {
    let path = job.guest.as_deref().unwrap_or(Path::new(GUESTS[0]));
    match GUESTS.iter().find(|name| path == Path::new(name)) {
        Some(name) => programs.join(format!("{name}.wasm")),
        None => path.to_path_buf(),
    }
}

/// Writes all files of the job. Returns a note if a policy that exists was not replaced by the given one.
fn write(repo: &Repo, programs: &Path, job: &Job, inputs: &JobInputs) -> Result<Option<String>> {
    let out = &job.out;
    let guest = guest(programs, job);
    let wasm = fs::read(&guest).with_context(|| format!("the guest {} cannot be read", guest.display()))?;
    let Some(name) = guest.file_name().and_then(|name| name.to_str()) else {
        bail!("the file name of the guest {} is not UTF-8; rename it", guest.display());
    };
    let existing = read_existing_config(&out.join(CONFIG))?;
    let guest_section = manifest::guest(name, &files::sha256(&wasm));
    let rendered = render::job(repo, &repo.release().join(JOB), &manifest::properties(&guest_section, inputs))?;
    for directory in ["jobs/wasm_cpi/bin", "jobs/wasm_cpi/config", "packages/wasm-cpi", "packages/guest"] {
        files::directory(&out.join(directory), 0o755)?;
    }
    // The runtime executes machine code from here, so only the owner may write to it.
    files::directory(&out.join("data/wasm_cpi/cache"), 0o755)?;
    for part in ["bin", "config"] {
        link(&Path::new(JOB).join(part), &out.join(part))?;
    }
    // If the guest is not prepared, the hot program runs the tool, which must be in the same directory.
    for program in [HOT, TOOL] {
        files::copy(&programs.join(program), &out.join("packages/wasm-cpi").join(program), 0o755)?;
    }
    files::copy(&guest, &out.join("packages/guest").join(name), 0o644)?;
    for preset in &inputs.presets {
        let to = out.join(preset.path());
        // A preset beside the policy is the operator's file.
        if preset.package.is_none() && to.exists() && !job.replace {
            continue;
        }
        files::directory(to.parent().unwrap_or(out), 0o755)?;
        files::write(&to, &preset.text, 0o644)?;
    }
    // There is no pre-start: it needs directories that an Agent creates, and `lay_out` prepares the guest.
    files::write(&out.join("bin/cpi"), rendered.file("bin/cpi")?, 0o755)?;
    let kept = write_policy(&out.join(POLICY), rendered.file(POLICY)?, job.replace, inputs)?;
    let config = match existing {
        None => rendered.file(CONFIG)?.to_owned(),
        Some(config) => serde_json::to_string_pretty(&update_config(config, guest_section, inputs))? + "\n",
    };
    files::write(&out.join(CONFIG), &config, 0o600)?;
    Ok(kept)
}

/// Writes the policy, unless there is one that the operator may have edited.
fn write_policy(policy: &Path, text: &str, replace: bool, inputs: &JobInputs) -> Result<Option<String>> {
    if replace || !policy.exists() {
        files::write(policy, text, 0o640)?;
        return Ok(None);
    }
    let differs = inputs.policy.is_some() && read(policy)? != text;
    Ok(differs
        .then(|| format!("{} exists and is kept; add `--replace` to replace it by the given policy", policy.display())))
}

/// Creates the link, unless it exists.
fn link(to: &Path, at: &Path) -> Result<()> {
    if fs::read_link(at).is_ok_and(|target| target == to) {
        return Ok(());
    }
    symlink(to, at).with_context(|| {
        format!("{} must be a link to {}, and it cannot be created; remove what is there", at.display(), to.display())
    })
}

/// Replaces the guest, and the values that are given, in the operator's configuration.
fn update_config(mut config: Map<String, Value>, guest: Value, inputs: &JobInputs) -> Map<String, Value> {
    config.insert("guest".to_owned(), guest);
    if let Some(properties) = &inputs.properties {
        config.insert("properties".to_owned(), properties.clone());
    }
    if inputs.allow_local {
        config.insert("allow_local".to_owned(), true.into());
    }
    config
}

/// Reads the configuration of a job that exists; returns `None` if there is none.
fn read_existing_config(path: &Path) -> Result<Option<Map<String, Value>>> {
    if !path.exists() {
        return Ok(None);
    }
    match serde_json::from_str(&read(path)?) {
        Ok(Value::Object(config)) => Ok(Some(config)),
        Ok(_) => bail!("{} is not a JSON object; fix or delete it", path.display()),
        Err(error) => bail!("{} is not JSON ({error}); fix or delete it", path.display()),
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

#[cfg(test)]
mod tests;
