//! `forget-leaks`: allows calls again of a guest that leaked a credential.

use crate::commands::report::Report;
use crate::config::{Config, ConfigSource};
use crate::failure::Failure;
use crate::leak_latch::{LatchError, LeakLatch};
use crate::startup;
use clap::Args;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct ForgetOptions {
    /// Config file of the job
    #[arg(long, value_name = "CPI.json", required_unless_present = "cache")]
    config: Option<PathBuf>,
    /// Directory of packages (default: `packages` beside the `jobs` directory of the config)
    #[arg(long, value_name = "DIR", requires = "config")]
    packages: Option<PathBuf>,
    /// Name of one of the `modules` in the config (default: all of them, and its own `guest`)
    #[arg(long, value_name = "NAME", requires = "config")]
    module: Option<String>,
    /// Cache directory, for jobs whose config is gone, as after `bosh create-env`; forgets the leaks of all guests in it
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    cache: Option<PathBuf>,
}

pub fn forget_leaks(options: &ForgetOptions) -> Result<Report, Failure> {
    startup::secure_process();
    let mut text = String::new();
    if let Some(cache) = &options.cache {
        let latches = LeakLatch::open_recorded(cache).map_err(unusable)?;
        for latch in &latches {
            let _ = writeln!(text, "{}", forget(latch)?);
        }
        if latches.is_empty() {
            let _ = writeln!(text, "{}: {NOTHING}", cache.display());
        }
    }
    if let Some(path) = options.config.clone() {
        let source = ConfigSource { path, packages: options.packages.clone(), module: options.module.clone() };
        let configs = match source.module {
            Some(_) => vec![Config::load(&source)?],
            None => Config::load_all(&source)?,
        };
        for config in &configs {
            let _ = writeln!(text, "{}: {}", config.guest.path.display(), forget_of(config)?);
        }
    }
    Ok(Report::good(text))
}

const NOTHING: &str = "no leak is recorded";

fn unusable(error: LatchError) -> Failure {
    Failure::config(format!("leaks cannot be forgotten: {error}"))
}

fn forget_of(config: &Config) -> Result<String, Failure> {
    if LeakLatch::exists(&config.cache, &config.guest_of_job()) {
        let latch = LeakLatch::open(&config.cache, &config.guest_of_job()).map_err(unusable)?;
        if latch.recorded().is_some() {
            return forget(&latch);
        }
    }
    Ok(format!("{NOTHING}{}", leaks_of_others(&config.cache)))
}

fn forget(latch: &LeakLatch) -> Result<String, Failure> {
    latch.forget().map_err(unusable)?;
    let Some(leak) = latch.recorded() else { return Ok(NOTHING.to_owned()) };
    Ok(format!("forgot that {} held the credential `{}` ({}, {})", leak.place, leak.secret, leak.method, leak.at))
}

/// Names the leaks in the cache that are not those of the config: of other jobs, or of a guest that the
/// job ran before.
fn leaks_of_others(cache: &Path) -> String {
    let count = LeakLatch::open_recorded(cache).map_or(0, |latches| latches.len());
    match count {
        0 => String::new(),
        _ => format!(
            " for this guest and config, but {} holds {count} of other guests or configs; \
             `wasm-cpi forget-leaks --cache {}` forgets them",
            cache.display(),
            cache.display()
        ),
    }
}
