//! Twin runs: the test that nothing a guest observes depends on a secret.
//!
//! The same script runs several times with the same configuration, names and
//! servers. Only the values of secrets differ. Everything that the guest can observe
//! must be the same, byte for byte, with seals renamed by their position: results,
//! errors with their texts, lengths, refusals, budgets, how the call ends, who was
//! contacted, and what servers received that got no secret.
//!
//! There are two exceptions. The tripwire compares answers and results with secrets,
//! so a run in which it finds one is compared only with runs in which it does, too.
//! The outcome of a login depends on whether the server accepts it, which servers of
//! twin runs always decide in the same way.

mod observation;
mod plants;
mod renaming;
mod row;

pub(crate) use observation::{Observation, observe_calls, observed, with_long_lines};
pub(crate) use plants::{expand_plants, plants};
pub(crate) use row::{CLASS, cases, derived_cases, run};

use crate::world::World;
use serde_json::Value;
use tests::Job;

/// One of the runs that are compared.
pub(crate) struct Run {
    /// Describes the values of its secrets in a message.
    pub(crate) name: String,
    pub(crate) job: Job,
    /// A row, of which the keys `method`, `vm_env`, `context`, `env`, `names` and `serve` count.
    pub(crate) row: Value,
    /// The scripts, each of which is one call. All calls use the same files.
    pub(crate) scripts: Vec<Value>,
    /// All secrets of this run, to find out which servers received one.
    pub(crate) secrets: Vec<String>,
}

/// What a comparison accepts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rules {
    /// Runs in which the tripwire finds a secret are compared only with each other.
    /// Without it, such a run fails.
    pub(crate) tripwire: bool,
    /// In some runs no guest may start, because the config is refused before.
    pub(crate) unstarted: bool,
}

/// Performs the runs and fails if the guest observes different things in two of them.
pub(crate) fn compare(world: &World, runs: &[Run], rules: Rules) -> Result<(), String> {
    let mut seen: Vec<(&str, Observation)> = Vec::new();
    for run in runs {
        let observed = run.observe(world).map_err(|why| format!("{}: {why}", run.name))?;
        if observed.leaked && !rules.tripwire {
            return Err(format!("{}: the tripwire found a secret: {observed}", run.name));
        }
        if rules.unstarted && observed.is_refused_config() {
            continue;
        }
        // A script with a mistake would be the same in all runs.
        if !rules.tripwire && observed.is_silent() {
            return Err(format!("{}: the guest reported nothing: {observed}", run.name));
        }
        seen.push((&run.name, observed));
    }
    for (at, (name, observed)) in seen.iter().enumerate() {
        let Some((other, first)) = seen[..at].iter().find(|(_, first)| first.leaked == observed.leaked) else {
            continue;
        };
        if let Some(difference) = first.difference(observed) {
            return Err(format!("a guest can tell `{other}` from `{name}`: {difference}"));
        }
    }
    Ok(())
}
