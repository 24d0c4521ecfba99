//! Runs the corpus in up to four shards at once, two for each core, as cases mostly
//! wait. Each shard has its own namespaces, and prints its results as lines of JSON.

use crate::table;
use serde_json::Value;
use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};

/// One shard of the corpus: its number, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    number: usize,
    count: usize,
}

const OPTION: &str = "--shard=";

impl Shard {
    pub(crate) fn is_option(argument: &str) -> bool {
        argument.starts_with(OPTION)
    }

    /// Reads `--shard=NUMBER/COUNT`. Without it, the only shard holds everything.
    pub(crate) fn from_arguments(arguments: &[String]) -> Shard {
        let option = arguments.iter().find_map(|argument| argument.strip_prefix(OPTION)?.split_once('/'));
        let parsed =
            option.and_then(|(number, count)| Some(Shard { number: number.parse().ok()?, count: count.parse().ok()? }));
        parsed.unwrap_or(Shard { number: 0, count: 1 })
    }

    /// Returns the items of this shard: every `count`th one.
    pub(crate) fn select<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().enumerate().filter(|(index, _)| index % self.count == self.number).map(|(_, one)| one).collect()
    }
}

/// Runs all shards at once and prints their results as one table.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let count = 2 * std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let this = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let start = |number: usize| {
        let mut command = Command::new(&this);
        command.arg(format!("{OPTION}{number}/{count}")).args(arguments).stdout(Stdio::piped());
        command.spawn().map_err(|error| format!("{}: {error}", this.display()))
    };
    let mut children = (0..count).map(start).collect::<Result<Vec<Child>, String>>()?;
    let outputs = std::thread::scope(|scope| {
        let reading: Vec<_> = children.iter_mut().map(|child| scope.spawn(|| output(child))).collect();
        let joined = reading.into_iter().map(|reading| reading.join().map_err(|_| "a thread panicked".to_owned())?);
        joined.collect::<Result<Vec<(String, bool)>, String>>()
    })?;
    let passed = outputs.iter().all(|(_, passed)| *passed);
    let lines = outputs.iter().flat_map(|(text, _)| text.lines());
    let parse = |line: &str| serde_json::from_str(line).map_err(|error| format!("a shard printed `{line}`: {error}"));
    let lines = lines.map(parse).collect::<Result<Vec<Value>, String>>()?;
    if lines.is_empty() && passed {
        return Err("no case and no check has the given text in its name".to_owned());
    }
    print!("{}", table::markdown(&lines));
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns what a shard prints, and whether it succeeds.
fn output(child: &mut Child) -> Result<(String, bool), String> {
    let mut text = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((text, status.success()))
}
