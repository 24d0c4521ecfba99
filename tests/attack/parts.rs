//! The corpus in up to four parts at once, twice as many as there are cores, each
//! in namespaces of its own, and their tables as one: a case waits a lot.

use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};

/// Which part of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    number: usize,
    of: usize,
}

const WORD: &str = "--part=";

impl Part {
    pub(crate) fn all() -> Part {
        Part { number: 0, of: 1 }
    }

    pub(crate) fn is_named_by(word: &str) -> bool {
        word.starts_with(WORD)
    }

    pub(crate) fn named(words: &[String]) -> Part {
        let named = words.iter().find_map(|word| word.strip_prefix(WORD)?.split_once('/'));
        let parsed = named.and_then(|(number, of)| Some(Part { number: number.parse().ok()?, of: of.parse().ok()? }));
        parsed.unwrap_or(Part::all())
    }

    /// Every so manyth.
    pub(crate) fn of<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().enumerate().filter(|(index, _)| index % self.of == self.number).map(|(_, one)| one).collect()
    }
}

/// Runs all parts at once and prints their tables as one.
pub(crate) fn run(words: &[String]) -> Result<ExitCode, String> {
    let of = 2 * std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let this = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let start = |number: usize| {
        let mut command = Command::new(&this);
        command.arg(format!("{WORD}{number}/{of}")).args(words).stdout(Stdio::piped());
        command.spawn().map_err(|error| format!("{}: {error}", this.display()))
    };
    let mut children = (0..of).map(start).collect::<Result<Vec<Child>, String>>()?;
    let outputs = std::thread::scope(|scope| {
        let reading: Vec<_> = children.iter_mut().map(|child| scope.spawn(|| output(child))).collect();
        let joined = reading.into_iter().map(|reading| reading.join().map_err(|_| "a thread panicked".to_owned())?);
        joined.collect::<Result<Vec<(String, bool)>, String>>()
    })?;
    let good = outputs.iter().all(|(_, good)| *good);
    let mut table = Table::default();
    outputs.iter().flat_map(|(text, _)| text.lines()).for_each(|line| table.add(line));
    if table.is_empty() && good {
        return Err("no case and no check has that in its name".to_owned());
    }
    print!("{}", table.text());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn output(child: &mut Child) -> Result<(String, bool), String> {
    let mut text = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((text, status.success()))
}

/// Rows of one name are one row, with the sums of their numbers.
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

    /// Nothing but sums.
    fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row[0].starts_with('*'))
    }

    /// The sum of all comes last, whichever part had the last class.
    fn text(&self) -> String {
        let (all, rows): (Vec<_>, Vec<_>) = self.rows.iter().partition(|row| row[0].starts_with('*'));
        let rows = rows.into_iter().chain(all).map(|row| format!("| {} |", row.join(" | ")));
        self.head.iter().cloned().chain(rows).map(|line| line + "\n").collect()
    }
}
