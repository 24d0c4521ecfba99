//! What `cloud` says on the way: one line per step, with its time.

use anyhow::{Context, Result};
use std::time::Instant;

pub(super) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let result = work().with_context(|| format!("{name} failed"))?;
    say(begun, name);
    Ok(result)
}

pub(super) fn say(begun: Instant, what: &str) {
    eprintln!("    {:>6.1} s  {what}", begun.elapsed().as_secs_f64());
}
