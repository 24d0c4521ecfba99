//! The tool's command line.

use crate::commands::{call, check, inspect, new, prepare, run};
use crate::component::{child, compile};
use crate::config::ConfigArg;
use crate::failure::Failure;
use crate::hardening::Hardening;
use crate::limits::Limits;
use crate::log::escape_text;
use crate::registry_server::{self, TlsFiles};
use clap::{Args, Parser, Subcommand};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
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
    /// Answer one request of the Director or the CLI: stdin to stdout
    ///
    /// Reads one JSON request from stdin, writes one JSON response to stdout and
    /// log lines to stderr. Exits 0 once a response is written. This is what the
    /// job's bin/cpi does, by the smaller program wasm-cpi-run.
    Run(ConfigArg),

    /// Compile guests ahead of their first call
    ///
    /// Checks pin and imports, compiles in a child process with limits, asks the
    /// guest who it is, and fills the cache. Does nothing for what is prepared.
    /// As root it becomes the owner of the cache directory first.
    Prepare(prepare::PrepareOptions),

    /// Find every problem in a job's files, without running the guest
    ///
    /// Prints all problems and warnings. Exits 1 if there are problems.
    Check(ConfigArg),

    /// Show who a guest is, what it needs, and what it would be granted
    ///
    /// Prints the pin to paste, the methods, and the needs the guest declares. With
    /// --config also which of them the policy grants, and lines to add for the rest;
    /// where the config has `guest.signature`, an unsigned guest is not looked at.
    ///
    /// With a second file: what that newer version wants beyond the first, and what
    /// it wants less. Exits 3 if it wants more, 0 if not, 1 for errors.
    Inspect(inspect::InspectOptions),

    /// Call a method by hand and watch what the guest does
    ///
    /// Each ARG is JSON, or a string if it is not. Shows every request the guest
    /// made, the result, and what was used of each limit.
    #[command(after_help = "Example: wasm-cpi call has_vm vm-1 --config config/cpi.json")]
    Call(call::CallOptions),

    /// Start a new guest: a crate that builds, with needs, a grant and tests
    New(new::NewOptions),

    /// Serve the BOSH registry's HTTP API, for stemcells before API version 2
    Registry(RegistryOptions),

    /// The checks that this build can leave out
    #[cfg(feature = "holes")]
    #[command(hide = true)]
    Holes,

    #[command(name = child::SUBCOMMAND, hide = true)]
    CompileGuest { compile_mib: u64, compile_seconds: u64, memory_mib: u64, hardening: Hardening },
}

#[derive(Args)]
struct RegistryOptions {
    /// Address to listen on; port 0 takes a free one and prints it
    #[arg(long, default_value = "127.0.0.1:25777")]
    listen: SocketAddr,
    /// Database file, made with mode 0600 if it is not there
    #[arg(long)]
    database: PathBuf,
    /// User of the HTTP basic authentication
    #[arg(long)]
    user: String,
    /// File that holds the password
    #[arg(long)]
    password_file: PathBuf,
    /// Largest settings to take, in KiB
    #[arg(long, default_value_t = Limits::default().registry_kib)]
    max_kib: u64,
    /// Certificate chain (PEM) to serve TLS
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
}

/// What a command for people has to say, and whether all is well.
pub struct Report {
    pub text: String,
    pub good: bool,
}

impl Report {
    pub fn good(text: impl Into<String>) -> Report {
        Report { text: text.into(), good: true }
    }
}

pub fn main() -> ExitCode {
    let report = match Cli::parse().command {
        Command::Run(options) => return if run::run(&options) { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) },
        Command::CompileGuest { compile_mib, compile_seconds, memory_mib, hardening } => {
            // What goes wrong here the parent sees as a missing answer.
            return match compile::compile_guest(compile_mib, compile_seconds, memory_mib, hardening) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        #[cfg(feature = "holes")]
        Command::Holes => {
            // Columns are kept apart by tabs, which `conclude` would escape.
            let written = std::io::stdout().write_all(holes().as_bytes());
            return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) };
        }
        Command::Prepare(options) => prepare::prepare(&options),
        Command::Check(options) => Ok(check::check(&options)),
        Command::Inspect(options) => return conclude(inspect::inspect(&options), options.exit_code()),
        Command::Call(options) => call::call(&options),
        Command::New(options) => new::new(&options),
        Command::Registry(options) => registry(options),
    };
    conclude(report, FAILURE)
}

fn registry(options: RegistryOptions) -> Result<Report, Failure> {
    let tls = options.cert.zip(options.key).map(|(certificate, key)| TlsFiles { certificate, key });
    registry_server::serve(registry_server::ServerOptions {
        listen: options.listen,
        store: options.database,
        user: options.user,
        password_file: options.password_file,
        tls,
        max_kib: options.max_kib,
    })?;
    Ok(Report::good(""))
}

/// Returns one line for each check and limit that mutation tests can turn off.
#[cfg(feature = "holes")]
fn holes() -> String {
    let limits = crate::limits::NAMES.iter();
    let limits = limits.map(|name| format!("limit-{name}\tlimits\tmore than `{name}` allows\n"));
    std::iter::once(wasm_cpi_checks::list()).chain(limits).collect()
}

const FAILURE: u8 = 1;

/// `bad` is how a report exits that is not good; errors exit 1. What is printed
/// may hold words of a stranger's module: it cannot steer the terminal.
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
            let text = escape_text(&format!("{failure}\n{detail}"), usize::MAX);
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
