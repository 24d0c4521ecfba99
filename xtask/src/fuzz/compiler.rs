//! The compiler wrapper of the fuzzer's build: cargo calls this program as
//! `xtask RUSTC ARGS…` for crates of the workspace, and it adds the flags that make
//! code report its coverage.
//!
//! Flags for the whole build would also change the dependencies, which would then be
//! compiled a second time.

use anyhow::{Context, Result};
use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The variable that is set for the `cargo` that builds the fuzzer.
const VARIABLE: &str = "WASM_CPI_FUZZ_COMPILER";

/// The crates whose coverage guides the fuzzer.
const INSTRUMENTED: [&str; 2] = ["wasm_cpi", "wasm_cpi_policy"];

/// The flags that cargo-fuzz sets, too: counters on edges, and callbacks at comparisons.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The flags of the instrumented crates and of the fuzz targets.
const CHECKS: [&str; 2] = ["-Cdebug-assertions=on", "-Coverflow-checks=on"];

/// Makes `cargo` call this program instead of the compiler.
pub(super) fn wrap(cargo: &mut Command) -> Result<()> {
    let own: PathBuf = env::current_exe().context("the path of this program cannot be read")?;
    cargo.env("RUSTC_WORKSPACE_WRAPPER", own).env(VARIABLE, "1");
    Ok(())
}

/// Returns true if cargo called this program instead of the compiler.
pub(crate) fn is_wrapper_call() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Runs the compiler and returns its exit code. Prints nothing, because cargo reads the output.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let Some((compiler, given)) = arguments.split_first() else { return ExitCode::FAILURE };
    let status = Command::new(compiler).args(given).args(extra_flags(given)).status();
    let code = status.ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Returns the flags to add for the crate that is compiled.
fn extra_flags(given: &[String]) -> Vec<&'static str> {
    let name = given.iter().position(|argument| argument == "--crate-name").and_then(|at| given.get(at + 1));
    match name.map(String::as_str) {
        Some(name) if INSTRUMENTED.contains(&name) => [&COVERAGE[..], &CHECKS[..]].concat(),
        Some("fuzz") => CHECKS.to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtimes_crates_are_instrumented() {
        let arguments = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, coverage, checks) in [
            ("--crate-name wasm_cpi --edition=2024 runtime/src/lib.rs", true, true),
            ("--crate-name wasm_cpi_policy --edition=2024 runtime/policy/src/lib.rs", true, true),
            ("--crate-name fuzz src/main.rs", false, true),
            ("--crate-name xtask src/main.rs", false, false),
            ("-vV", false, false),
            ("--crate-name", false, false),
        ] {
            let flags = extra_flags(&arguments(line));
            assert_eq!(flags.contains(&COVERAGE[0]), coverage, "{line}");
            assert_eq!(flags.contains(&CHECKS[0]), checks, "{line}");
        }
    }
}
