//! `forget-leaks`: allows calls of a module again whose answers or results held a credential.

use crate::commands::cli::Report;
use crate::config::{Config, ConfigArg};
use crate::failure::Failure;
use crate::leak_latch::LeakLatch;
use crate::startup;
use std::fmt::Write as _;

/// Forgets the leaks of one module, or of all modules of the config if none is named.
pub fn forget_leaks(source: &ConfigArg) -> Result<Report, Failure> {
    startup::secure_process();
    let configs = match source.module {
        Some(_) => vec![Config::load(source)?],
        None => Config::load_all(source)?,
    };
    let mut text = String::new();
    for config in &configs {
        let _ = writeln!(text, "{}: {}", config.guest.path.display(), forget(config)?);
    }
    Ok(Report::good(text))
}

fn forget(config: &Config) -> Result<String, Failure> {
    let unusable = |error| Failure::config(format!("leaks cannot be forgotten: {error}"));
    if !LeakLatch::exists(&config.cache, config.latch_key()) {
        return Ok("no leak is recorded".to_owned());
    }
    let latch = LeakLatch::open(&config.cache, config.latch_key()).map_err(unusable)?;
    let Some(leak) = latch.recorded() else { return Ok("no leak is recorded".to_owned()) };
    latch.forget().map_err(unusable)?;
    Ok(format!("forgot that {} held the credential `{}` ({}, {})", leak.place, leak.secret, leak.method, leak.at))
}
