//! Reports tests that this machine cannot run completely. The summary of
//! `cargo xtask test` lists them with their reasons.

use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// The environment variable with the file to which each skip appends a line;
/// `cargo xtask test` sets it.
const VARIABLE: &str = "WASM_CPI_SKIPS";

static REASONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reports that the running test skips something. `name` is the missing feature of the
/// machine; in CI it must be listed in `tests/skips.json`.
#[expect(clippy::print_stderr, reason = "shows the skip to a developer who runs a single test")]
pub fn skip(name: &str, reason: &str) {
    eprintln!("skipped ({name}): {reason}");
    REASONS.lock().unwrap_or_else(PoisonError::into_inner).push(reason.to_owned());
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    // The test harness names a thread after its test; threads of the attack program have no name.
    let test = std::thread::current().name().unwrap_or("attack").to_owned();
    let line = format!("{}\n", json!({"name": name, "reason": reason, "test": test}));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // One write per line, because tests append concurrently.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
}

/// Returns the reasons since the last call of this function.
pub fn take_reasons() -> Vec<String> {
    std::mem::take(&mut REASONS.lock().unwrap_or_else(PoisonError::into_inner))
}
