//! Runs the corpus and prints its table.

use crate::case::Case;
use crate::world::World;
use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn run(world: &World, cases: &[Case]) -> ExitCode {
    // What a case says when it fails is in the table's footnotes.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let mut lines: Vec<(&str, usize, usize)> = Vec::new();
    let mut failures = Vec::new();
    for case in cases {
        let held = case.run(world);
        if lines.last().is_none_or(|(class, ..)| *class != case.class) {
            lines.push((case.class, 0, 0));
        }
        if let Some((_, all, failed)) = lines.last_mut() {
            *all += 1;
            *failed += usize::from(held.is_err());
        }
        if let Err(why) = held {
            eprintln!("FAILED {}\n       {}", case.id(), why.replace('\n', "\n       "));
            failures.push(case.id());
        }
    }
    println!("| class | cases | held | failed |\n|---|---:|---:|---:|");
    for (class, all, failed) in &lines {
        println!("| {class} | {all} | {} | {failed} |", all - failed);
    }
    println!("| **all** | **{}** | **{}** | **{}** |", cases.len(), cases.len() - failures.len(), failures.len());
    eprintln!("\n{} cases in {:.1} s", cases.len(), begun.elapsed().as_secs_f64());
    if cases.is_empty() || !failures.is_empty() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
