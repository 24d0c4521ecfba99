//! Turns every named check of the runtime off, one at a time, and shows the case
//! that notices: a check that nobody would miss is a check that nobody tests.

use crate::case::Case;
use crate::parts::Part;
use crate::world::World;
use std::process::{Command, ExitCode};
use tests::{call, dist};

pub(crate) fn run(
    world: &World,
    cases: &[Case],
    part: Part,
    wanted: impl Fn(&str) -> bool,
) -> Result<ExitCode, String> {
    std::panic::set_hook(Box::new(|_| {}));
    let mut checks = checks()?;
    let unknown = |hole: &&String| !checks.iter().any(|(name, _)| name == *hole);
    if let Some(hole) = cases.iter().flat_map(|case| &case.holes).find(unknown) {
        return Err(format!("a case names the check `{hole}`, which the runtime does not have"));
    }
    checks.retain(|(name, _)| wanted(name));
    let checks = part.of(checks);
    let mut missed = Vec::new();
    println!("| check | what it refuses | the case that misses it |\n|---|---|---|");
    for (check, what) in &checks {
        let mut tried = cases.iter().filter(|case| case.holes.contains(check));
        let caught = tried.find(|case| {
            let with = case.run(world);
            call::open_hole(Some(check));
            let without = case.run(world);
            call::open_hole(None);
            if with.is_ok() && without.is_err() {
                return true;
            }
            eprintln!("{check}: {}: with it {with:?}, without it {without:?}", case.id());
            false
        });
        match caught {
            Some(case) => println!("| {check} | {what} | {} |", case.id()),
            None => {
                println!("| {check} | {what} | **none** |");
                missed.push(check.as_str());
            }
        }
    }
    eprintln!("\n{} checks, {} that no case misses", checks.len(), missed.len());
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(format!("no case notices that these are off: {}", missed.join(", ")))
}

/// What the programs built for it say that can be turned off: name and description.
fn checks() -> Result<Vec<(String, String)>, String> {
    let output = Command::new(dist::tool()).arg("holes").output().map_err(|error| format!("holes: {error}"))?;
    if !output.status.success() {
        return Err("these programs have no holes: `cargo xtask attack --holes` builds some".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let check = |line: &str| {
        let mut columns = line.split('\t');
        let (name, _area, what) = (columns.next()?, columns.next()?, columns.next()?);
        Some((name.to_owned(), what.to_owned()))
    };
    Ok(text.lines().filter_map(check).collect())
}
