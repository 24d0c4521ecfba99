//! The progress lines of `cloud`: one line per step, with its time.

use anyhow::{Context, Result};
use std::time::Instant;

/// Runs one step and reports its time; adds the step's name to its error.
pub(super) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = work().with_context(|| format!("the step `{name}` failed"))?;
    report(start, name);
    Ok(result)
}

/// Prints a line with the time since `start`.
pub(super) fn report(start: Instant, text: &str) {
    eprintln!("    {:>6.1} s  {text}", start.elapsed().as_secs_f64());
}
