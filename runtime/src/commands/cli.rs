//! The command line of the tool.

use crate::commands::report::Report;
use crate::commands::{call, check, explain, forget_leaks, forget_tokens, inspect, new, prepare, registry, run};
use crate::component::{child, compile};
use crate::config::ConfigSource;
use crate::failure::Failure;
use crate::lock_down::LockDownLevel;
use crate::log::escape_text;
use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

/// Runs a BOSH CPI as a sandboxed WebAssembly component.
#[derive(Parser)]
#[command(name = "wasm-cpi", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve one request of the Director or the CLI, from stdin to stdout
    ///
    /// Reads one JSON request from stdin, writes one JSON response to stdout and log
    /// lines to stderr. Exits 0 once a response is written, also if the call failed.
    /// A job's bin/cpi does the same with the smaller program wasm-cpi-run.
    Run(ConfigSource),

    /// Compile guests before their first call
    ///
    /// Checks the pin and the imports, compiles in a child process with limits, runs
    /// the guest's `describe`, and stores the result in the cache. Skips guests that
    /// are prepared already. If root runs it, it first becomes the user who owns the
    /// cache directory.
    Prepare(prepare::PrepareOptions),

    /// List all problems in a job's files, without running the guest
    ///
    /// Prints all problems and warnings. Exits 1 if there are problems. A need that no
    /// grant covers is a problem. If root runs it, it checks as the user who will run
    /// calls, and says so.
    Check(check::CheckOptions),

    /// Show a guest's name, methods and needs, and what a policy grants it
    ///
    /// Prints the pin for the config, the methods, and the needs that the guest
    /// declares. With --config it also prints which needs the policy grants, and lines
    /// to add for the rest; it exits 4 if no grant covers a need. If that config has
    /// `guest.signature`, a guest without the required signatures is rejected.
    ///
    /// With a second file, it prints what the newer version needs in addition, and
    /// what it no longer needs. Exits 3 if it needs more, 0 if not, and 1 after errors.
    Inspect(inspect::InspectOptions),

    /// Call a method by hand and show what the guest does
    ///
    /// Each ARG is parsed as JSON; text that is not JSON is a string. Shows every
    /// request of the guest, the result, and how much of each limit was used.
    #[command(after_help = "Example: wasm-cpi call has_vm vm-1 --config config/cpi.json")]
    Call(call::CallOptions),

    /// Create the crate of a new guest, with needs, an example policy and tests
    New(new::NewOptions),

    /// Explain the code of a refusal, or a limit
    ///
    /// Messages show codes in brackets, and the audit log in the field `code`. Prints
    /// what the code means and what to do. Without CODE it lists all codes and limits.
    #[command(after_help = "Example: wasm-cpi explain grant-host")]
    Explain(explain::ExplainOptions),

    /// Allow calls of a guest again after a leak
    ///
    /// If a response or a result held a credential, further calls of the guest are
    /// refused. Look at its requests in the audit log first.
    #[command(after_help = "Example: wasm-cpi forget-leaks --config config/cpi.json")]
    ForgetLeaks(forget_leaks::ForgetOptions),

    /// Delete the tokens that calls keep for later ones
    ///
    /// Calls keep tokens of logins and temporary keys in the cache directory, unless the config says
    /// `"keep_tokens": false`. The next call logs in again. This deletes the tokens of
    /// all guests in the directory, so there is no `--module`.
    #[command(after_help = "Example: wasm-cpi forget-tokens --config config/cpi.json")]
    ForgetTokens(forget_tokens::ForgetTokensOptions),

    /// Serve the BOSH registry's HTTP API, for stemcells and callers of API version 1
    Registry(registry::RegistryOptions),

    /// List the checks and limits that mutation tests can turn off in this build
    #[cfg(feature = "mutation-testing")]
    #[command(hide = true)]
    Mutants,

    #[command(name = child::SUBCOMMAND, hide = true)]
    CompileGuest { limits: String, hardening: LockDownLevel },
}

pub fn main() -> ExitCode {
    let report = match Cli::parse().command {
        Command::Run(options) => return if run::run(&options) { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) },
        Command::CompileGuest { limits, hardening } => {
            // The parent process reports a missing answer.
            return match compile::compile_guest(&limits, hardening) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        #[cfg(feature = "mutation-testing")]
        Command::Mutants => {
            // Columns are separated by tabs, which `conclude` would escape.
            let written = std::io::stdout().write_all(mutants().as_bytes());
            return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) };
        }
        Command::Prepare(options) => prepare::prepare(&options),
        Command::Check(options) => check::check(&options),
        Command::Inspect(options) => return conclude(inspect::inspect(&options), options.exit_code()),
        Command::Call(options) => call::call(&options),
        Command::New(options) => new::new(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::ForgetLeaks(options) => forget_leaks::forget_leaks(&options),
        Command::ForgetTokens(options) => forget_tokens::forget_tokens(&options),
        Command::Registry(options) => registry::registry(options),
    };
    conclude(report, FAILURE)
}

/// Returns one line for each check and limit that mutation tests can turn off.
#[cfg(feature = "mutation-testing")]
fn mutants() -> String {
    let names = crate::limits::ALL.iter().map(|limit| limit.name);
    let limits = names.map(|name| format!("limit-{name}\tlimits\tmore than `{name}` allows\n"));
    std::iter::once(wasm_cpi_checks::list()).chain(limits).collect()
}

const FAILURE: u8 = 1;

/// Prints a report and returns the exit code: 0, `bad` if the report is not good, and 1 for a
/// failure. Text of a guest is part of the output, so control characters are escaped.
fn conclude(report: Result<Report, Failure>, bad: u8) -> ExitCode {
    match report {
        Ok(report) => {
            let text = escape_text(&report.text, usize::MAX);
            match std::io::stdout().write_all(text.as_bytes()) {
                Ok(()) if report.good => ExitCode::SUCCESS,
                Ok(()) => ExitCode::from(bad),
                Err(_) => ExitCode::from(FAILURE),
            }
        }
        Err(failure) => {
            let detail = if failure.detail.is_empty() { String::new() } else { format!("{}\n", failure.detail) };
            let text = escape_text(&format!("{}\n{detail}", failure.text_with_code()), usize::MAX);
            let _ = std::io::stderr().write_all(text.as_bytes());
            ExitCode::from(FAILURE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
