//! Turns off one named check of the runtime after the other, and prints the case
//! that fails without it. A check without such a case is not tested. Every twin run that
//! names a check must fail without it.

use crate::case::Case;
use crate::shards::Shard;
use crate::twins;
use crate::world::World;
use serde_json::json;
use std::process::{Command, ExitCode};
use tests::{call, dist};

pub(crate) fn run(
    world: &World,
    cases: &[Case],
    shard: Shard,
    wanted: impl Fn(&str) -> bool,
) -> Result<ExitCode, String> {
    std::panic::set_hook(Box::new(|_| {}));
    let mut checks = checks()?;
    let unknown = |mutant: &&String| !checks.iter().any(|(name, _)| name == *mutant);
    if let Some(mutant) = cases.iter().flat_map(|case| &case.mutants).find(unknown) {
        return Err(format!("a case names the check `{mutant}`, which the runtime does not have"));
    }
    checks.retain(|(name, _)| wanted(name));
    let checks = shard.select(checks);
    let mut missed = Vec::new();
    for (check, what) in &checks {
        let notices = |case: &Case| {
            let with = case.run(world);
            call::disable_check(Some(check));
            let without = case.run(world);
            call::disable_check(None);
            if with.is_ok() && without.is_err() {
                return true;
            }
            eprintln!("{check}: {}: with it {with:?}, without it {without:?}", case.id());
            false
        };
        let caught = cases.iter().filter(|case| case.mutants.contains(check)).find(|case| notices(case));
        // Twin runs must notice by themselves, too, whichever case is the first to notice.
        let mut twins = cases.iter().filter(|case| case.class == twins::CLASS && case.mutants.contains(check));
        let caught = caught.filter(|first| twins.all(|case| case.id() == first.id() || notices(case)));
        println!("{}", json!({"check": check, "what": what, "case": caught.map(Case::id)}));
        if caught.is_none() {
            missed.push(check.as_str());
        }
    }
    eprintln!("\n{} checks, {} that no case notices", checks.len(), missed.len());
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(format!("no case notices that these are off: {}", missed.join(", ")))
}

/// Returns the name and the description of each check that can be turned off.
fn checks() -> Result<Vec<(String, String)>, String> {
    let output = Command::new(dist::tool()).arg("mutants").output().map_err(|error| format!("mutants: {error}"))?;
    if !output.status.success() {
        return Err("these programs have no mutants: `cargo xtask attack --mutants` builds some".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let check = |line: &str| {
        let mut columns = line.split('\t');
        let (name, _area, what) = (columns.next()?, columns.next()?, columns.next()?);
        Some((name.to_owned(), what.to_owned()))
    };
    Ok(text.lines().filter_map(check).collect())
}
