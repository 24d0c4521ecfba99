//! This program in the compiler's place: cargo calls it as `xtask RUSTC ARGS…`
//! for crates of the workspace, and it adds what makes code tell its coverage.
//!
//! Done this way, and not by flags for the whole build, so that dependencies
//! are those of the shipped programs, compiled once.

use anyhow::{Context, Result};
use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Set for the `cargo` that builds the fuzzer.
const WRAPS: &str = "WASM_CPI_FUZZ_COMPILER";

/// The crates whose paths the fuzzer is to find.
const WATCHED: [&str; 2] = ["wasm_cpi", "wasm_cpi_policy"];

/// What cargo-fuzz sets, too: counters on edges, and callbacks at comparisons.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// In the watched crates and in what watches them.
const CHECKS: [&str; 2] = ["-Cdebug-assertions=on", "-Coverflow-checks=on"];

/// Has `cargo` call this program in place of the compiler.
pub(super) fn wrap(cargo: &mut Command) -> Result<()> {
    let own: PathBuf = env::current_exe().context("this program does not know where it lies")?;
    cargo.env("RUSTC_WORKSPACE_WRAPPER", own).env(WRAPS, "1");
    Ok(())
}

/// Whether it was called so.
pub(crate) fn is_called() -> bool {
    env::var_os(WRAPS).is_some()
}

/// The compiler's own exit code, and no word more than it said.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let Some((compiler, given)) = words.split_first() else { return ExitCode::FAILURE };
    let status = Command::new(compiler).args(given).args(added(given)).status();
    let code = status.ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn added(given: &[String]) -> Vec<&'static str> {
    let name = given.iter().position(|word| word == "--crate-name").and_then(|at| given.get(at + 1));
    match name.map(String::as_str) {
        Some(name) if WATCHED.contains(&name) => [&COVERAGE[..], &CHECKS[..]].concat(),
        Some("fuzz") => CHECKS.to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_watched_tells_its_coverage() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, coverage, checks) in [
            ("--crate-name wasm_cpi --edition=2024 runtime/src/lib.rs", true, true),
            ("--crate-name wasm_cpi_policy --edition=2024 runtime/policy/src/lib.rs", true, true),
            ("--crate-name fuzz src/main.rs", false, true),
            ("--crate-name xtask src/main.rs", false, false),
            ("-vV", false, false),
            ("--crate-name", false, false),
        ] {
            let added = added(&words(line));
            assert_eq!(added.contains(&COVERAGE[0]), coverage, "{line}");
            assert_eq!(added.contains(&CHECKS[0]), checks, "{line}");
        }
    }
}
