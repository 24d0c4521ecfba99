//! Tests that this machine cannot run, in part or at all, report that here: the
//! summary of `cargo xtask test` lists them with their reasons.

use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// Names the file to which each skip appends a line; `cargo xtask test` sets it.
const VARIABLE: &str = "WASM_CPI_SKIPS";

static REASONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reports that the running test leaves something out. The name is what the machine
/// lacks: in CI it must be on the list of `tests/skips.json`.
#[expect(clippy::print_stderr, reason = "for whoever runs the test alone")]
pub fn skip(name: &str, reason: &str) {
    eprintln!("skipped ({name}): {reason}");
    REASONS.lock().unwrap_or_else(PoisonError::into_inner).push(reason.to_owned());
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    // The test harness gives a thread the name of its test; threads of the attack program have none.
    let test = std::thread::current().name().unwrap_or("attack").to_owned();
    let line = format!("{}\n", json!({"name": name, "reason": reason, "test": test}));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // One write per line: tests append beside each other.
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
}

/// The reasons since this was last asked.
pub fn take_reasons() -> Vec<String> {
    std::mem::take(&mut REASONS.lock().unwrap_or_else(PoisonError::into_inner))
}
