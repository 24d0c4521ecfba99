//! Runs the corpus and prints its table.

use crate::case::{Case, Held};
use crate::world::World;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Default)]
struct Count {
    all: usize,
    failed: usize,
    skipped: usize,
}

pub(crate) fn run(world: &World, cases: &[Case]) -> ExitCode {
    // What a case says when it fails is in the table's footnotes.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let mut lines: Vec<(&str, Count)> = Vec::new();
    let mut total = Count::default();
    for case in cases {
        let held = case.run(world);
        if lines.last().is_none_or(|(class, ..)| *class != case.class) {
            lines.push((case.class, Count::default()));
        }
        for count in lines.last_mut().map(|(_, count)| count).into_iter().chain([&mut total]) {
            count.all += 1;
            count.failed += usize::from(held.is_err());
            count.skipped += usize::from(matches!(held, Ok(Held::Skipped(_))));
        }
        match held {
            Ok(Held::Yes) => {}
            Ok(Held::Skipped(why)) => eprintln!("SKIPPED {}\n        {why}", case.id()),
            Err(why) => eprintln!("FAILED {}\n       {}", case.id(), why.replace('\n', "\n       ")),
        }
    }
    print(&lines, &total);
    eprintln!("\n{} cases in {:.1} s", total.all, begun.elapsed().as_secs_f64());
    if total.failed > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// With a column for what was skipped, if anything was.
fn print(lines: &[(&str, Count)], total: &Count) {
    let (title, rule) = if total.skipped > 0 { (" skipped |", "---:|") } else { ("", "") };
    println!("| class | cases | held | failed |{title}\n|---|---:|---:|---:|{rule}");
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
