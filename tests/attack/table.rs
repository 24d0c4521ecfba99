//! Runs the corpus and prints its table.

use crate::case::{Case, Outcome};
use crate::world::World;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Default)]
struct Count {
    all: usize,
    failed: usize,
    skipped: usize,
}

/// Runs the cases. Fails if one of them fails.
pub(crate) fn run(world: &World, cases: &[Case]) -> ExitCode {
    // The message of a panic is printed with the failed case below.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let mut lines: Vec<(&str, Count)> = Vec::new();
    let mut total = Count::default();
    for case in cases {
        let outcome = case.run_and_check_code(world);
        if lines.last().is_none_or(|(class, ..)| *class != case.class) {
            lines.push((case.class, Count::default()));
        }
        for count in lines.last_mut().map(|(_, count)| count).into_iter().chain([&mut total]) {
            count.all += 1;
            count.failed += usize::from(outcome.is_err());
            count.skipped += usize::from(matches!(outcome, Ok(Outcome::Skipped(_))));
        }
        match outcome {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::Skipped(why)) => eprintln!("SKIPPED {}\n        {why}", case.id()),
            Err(why) => eprintln!("FAILED {}\n       {}", case.id(), why.replace('\n', "\n       ")),
        }
    }
    print(&lines, &total);
    eprintln!("\n{} cases in {:.1} s", total.all, start.elapsed().as_secs_f64());
    if total.failed > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Prints the table, with a column for skipped cases if there are any.
fn print(lines: &[(&str, Count)], total: &Count) {
    let (title, rule) = if total.skipped > 0 { (" skipped |", "---:|") } else { ("", "") };
    println!("| class | cases | passed | failed |{title}\n|---|---:|---:|---:|{rule}");
    let row = |class: &str, count: &Count, bold: &str| {
        let mut cells = vec![count.all, count.all - count.failed - count.skipped, count.failed];
        cells.extend((total.skipped > 0).then_some(count.skipped));
        let cells: Vec<String> = cells.iter().map(|cell| format!("{bold}{cell}{bold}")).collect();
        println!("| {bold}{class}{bold} | {} |", cells.join(" | "));
    };
    for (class, count) in lines {
        row(class, count, "");
    }
    row("all", total, "**");
}
