//! `attack`: runs a corpus of attacks against the built programs, under a
//! production policy.
//!
//! It creates two network namespaces (`network`), joined by a veth pair and
//! nothing else. Calls run in the near one, and servers in the far one. A trace of
//! packets (`trace`) shows what left the near one, whatever the runtime reports.
//! `attack` prints a table; `attack --mutants` turns off one named check after the
//! other and prints the case that fails without it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the program prints a table")]

mod case;
mod cases;
mod dns;
mod mutants;
mod needles;
mod network;
mod row;
mod shards;
mod table;
mod trace;
mod twins;
mod watch;
mod world;

use shards::Shard;
use std::process::ExitCode;
use std::sync::Arc;

/// The option of the program that runs inside its own namespaces.
const INSIDE: &str = "--inside";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, rest)) if first == INSIDE => run_inside(rest),
        Some((first, _)) if Shard::is_option(first) => network::enter(INSIDE, &arguments),
        _ => shards::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(why) => {
            eprintln!("attack: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one shard. The arguments are `--mutants` and parts of the names of cases.
fn run_inside(arguments: &[String]) -> Result<ExitCode, String> {
    let shard = Shard::from_arguments(arguments);
    let mutants = arguments.iter().any(|argument| argument == "--mutants");
    let filters: Vec<&str> = arguments.iter().map(String::as_str).filter(|name| !name.starts_with("--")).collect();
    let files = tempfile::tempdir().map_err(|error| format!("cannot create a temporary directory: {error}"))?;
    network::mount_name_service(files.path())?;
    let world = Arc::new(world::World::default());
    network::run_in_pair(
        || world.serve_far(),
        || {
            world.serve_near()?;
            let world = world.with_trace(trace::Trace::start()?);
            let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
            let mut cases = cases::all()?;
            if mutants {
                return mutants::run(&world, &cases, shard, wanted);
            }
            cases.retain(|case| wanted(&case.id()));
            Ok(table::run(&world, &shard.select(cases)))
        },
    )
}
