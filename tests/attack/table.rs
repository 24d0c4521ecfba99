//! Runs the cases of a shard, and makes one table of the results of all shards.

use crate::case::{Case, Outcome};
use crate::world::World;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Instant;

#[derive(Default)]
struct Count {
    all: usize,
    failed: usize,
    skipped: usize,
}

/// Runs the cases, and prints one line of JSON for each class. Fails if one of them fails.
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
    for (class, Count { all, failed, skipped }) in &lines {
        println!("{}", json!({"class": class, "all": all, "failed": failed, "skipped": skipped}));
    }
    eprintln!("\n{} cases in {:.1} s", total.all, start.elapsed().as_secs_f64());
    if total.failed > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns the merged results of all shards as one table. A line of a shard is about a class of cases, or
/// about a check that a mutation test turned off.
pub(crate) fn markdown(lines: &[Value]) -> String {
    if lines.iter().any(|line| line["check"].is_string()) { checks(lines) } else { classes(lines) }
}

/// Returns the table of checks, with the case that notices each.
fn checks(lines: &[Value]) -> String {
    let mut text = "| check | what it refuses | the case that fails without it |\n|---|---|---|\n".to_owned();
    for line in lines {
        let cell = |key: &str| line[key].as_str().unwrap_or("**none**");
        text += &format!("| {} | {} | {} |\n", cell("check"), cell("what"), cell("case"));
    }
    text
}

/// Returns the table of classes with the sums of all shards, and a column for skipped cases if there
/// are any.
fn classes(lines: &[Value]) -> String {
    let mut classes: Vec<(&str, Count)> = Vec::new();
    let mut total = Count::default();
    for line in lines {
        let class = line["class"].as_str().unwrap_or_default();
        let at = classes.iter().position(|(known, _)| *known == class).unwrap_or_else(|| {
            classes.push((class, Count::default()));
            classes.len() - 1
        });
        for count in [&mut classes[at].1, &mut total] {
            let number = |key: &str| usize::try_from(line[key].as_u64().unwrap_or_default()).unwrap_or_default();
            count.all += number("all");
            count.failed += number("failed");
            count.skipped += number("skipped");
        }
    }
    let (title, rule) = if total.skipped > 0 { (" skipped |", "---:|") } else { ("", "") };
    let mut text = format!("| class | cases | passed | failed |{title}\n|---|---:|---:|---:|{rule}\n");
    let row = |class: &str, count: &Count, bold: &str| {
        let mut cells = vec![count.all, count.all - count.failed - count.skipped, count.failed];
        cells.extend((total.skipped > 0).then_some(count.skipped));
        let cells: Vec<String> = cells.iter().map(|cell| format!("{bold}{cell}{bold}")).collect();
        format!("| {bold}{class}{bold} | {} |\n", cells.join(" | "))
    };
    text.extend(classes.iter().map(|(class, count)| row(class, count, "")));
    text + &row("all", &total, "**")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_shards_become_one_table() {
        let line = |class: &str, failed: usize| json!({"class": class, "all": 3, "failed": failed, "skipped": 0});
        let table = markdown(&[line("URLs | and more", 0), line("Logs", 1), line("Logs", 0)]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            ["| URLs | and more | 3 | 3 | 0 |", "| Logs | 6 | 5 | 1 |", "| **all** | **9** | **8** | **1** |"]
        );
        let table = markdown(&[json!({"check": "pin", "what": "w", "case": null})]);
        assert!(table.ends_with("| pin | w | **none** |\n"), "{table}");
    }
}
