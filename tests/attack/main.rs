//! `attack`: every way out that we could think of, tried on the built programs
//! under production policy.
//!
//! It runs in two network namespaces of its own (`network`), joined by a veth
//! pair and nothing else: calls in the near one, every server in the far one.
//! What left the near one is known from its packets (`trace`), whatever the
//! runtime says of it. `attack` prints a table; `attack --holes` turns every
//! named check off in turn and shows the case that notices.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is for people")]

mod case;
mod cases;
mod dns;
mod holes;
mod needles;
mod network;
mod parts;
mod row;
mod table;
mod trace;
mod watch;
mod world;

use parts::Part;
use std::process::ExitCode;
use std::sync::Arc;

const INSIDE: &str = "--inside";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((first, rest)) if first == INSIDE => inside(rest),
        Some((first, _)) if Part::is_named_by(first) => network::enter(INSIDE, &words),
        _ => parts::run(&words),
    };
    match done {
        Ok(code) => code,
        Err(why) => {
            eprintln!("attack: {why}");
            ExitCode::FAILURE
        }
    }
}

/// `--holes`, and parts of names to choose cases by.
fn inside(words: &[String]) -> Result<ExitCode, String> {
    let part = Part::named(words);
    let holes = words.iter().any(|word| word == "--holes");
    let filters: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let files = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    network::mount_name_service(files.path())?;
    let world = Arc::new(world::World::default());
    network::pair(
        || world.serve_far(),
        || {
            world.serve_near()?;
            let world = world.with_trace(trace::Trace::start()?);
            let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
            let mut cases = cases::all()?;
            if holes {
                return holes::run(&world, &cases, part, wanted);
            }
            cases.retain(|case| wanted(&case.id()));
            Ok(table::run(&world, &part.of(cases)))
        },
    )
}
