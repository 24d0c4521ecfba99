//! Runs the corpus in up to four shards at once, two for each core, as cases mostly
//! wait. Each shard has its own namespaces. Their tables are merged.

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

/// Runs all shards at once and prints their tables as one.
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
    let mut table = Table::default();
    outputs.iter().flat_map(|(text, _)| text.lines()).for_each(|line| table.add(line));
    if table.is_empty() && passed {
        return Err("no case and no check has the given text in its name".to_owned());
    }
    print!("{}", table.text());
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

/// The merged table: rows with the same name become one row with the sums of their numbers.
#[derive(Default)]
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn add(&mut self, line: &str) {
        if self.head.len() < 2 {
            self.head.push(line.to_owned());
            return;
        }
        let cells: Vec<String> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        if self.head.contains(&line.to_owned()) {
            return;
        }
        let Some(known) = self.rows.iter_mut().find(|row| row[0] == cells[0]) else {
            return self.rows.push(cells);
        };
        for (sum, more) in known.iter_mut().zip(&cells).skip(1) {
            let number = |cell: &str| cell.trim_matches('*').parse::<usize>().ok();
            if let (Some(one), Some(other)) = (number(sum), number(more)) {
                let bold = if sum.starts_with('*') { "**" } else { "" };
                *sum = format!("{bold}{}{bold}", one + other);
            }
        }
    }

    /// Returns true if the table holds only the line of totals.
    fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row[0].starts_with('*'))
    }

    /// Returns the table as text, with the line of totals at the end.
    fn text(&self) -> String {
        let (all, rows): (Vec<_>, Vec<_>) = self.rows.iter().partition(|row| row[0].starts_with('*'));
        let rows = rows.into_iter().chain(all).map(|row| format!("| {} |", row.join(" | ")));
        self.head.iter().cloned().chain(rows).map(|line| line + "\n").collect()
    }
}
