//! Twin runs of a guest that uses everything, with secrets of all shapes in all fields, and of
//! the ways in which its call ends.

use super::endings::{Ending, endings};
use super::scenario::{SERVERS, Search};
use super::secret_set::seed;
use crate::case::Case;
use crate::twins::{CLASS, Observation, observe_calls, observed, with_long_lines};
use crate::world::World;
use serde_json::{Value, json};

/// Each turn puts secrets of other shapes into the fields.
const TURNS: [usize; 3] = [0, 3, 6];

pub(super) fn cases() -> Vec<Case> {
    let registry = json!([
        {"op": "agent.created", "vm": "vm-2", "key": "vm-2"}, {"op": "registry.get", "id": "vm-2"},
        {"op": "agent.attached", "key": "vm-2", "disk": "disk-1", "hint": "/dev/sdx"}, {"op": "agent.deleted", "key": "vm-2"},
    ]);
    let config = json!([{"op": "config"}, {"op": "clock.ending"}]);
    // The second and the third call use tokens that the first one has kept.
    let more = [
        ("secrets of all shapes in every field, used in every way", config.clone(), 2, 1),
        ("secrets of all shapes in every field, used in every way by several calls", config, 2, 3),
        ("secrets of all shapes in every field, used in every way with a registry", registry, 1, 1),
    ];
    let more = more.map(|(name, operations, stemcell, calls)| (Ending::good(name, operations), stemcell, calls));
    let endings = endings().into_iter().filter(Ending::is_repeatable).map(|ending| (ending, 2, 1));
    let case = |(ending, stemcell, calls): (Ending, u32, usize)| {
        let name = ending.name;
        let attempt = move |world: &World| {
            compare_turns(world, &ending, stemcell, calls).map_err(|why| format!("ATTACK_SEED={}: {why}", seed()))
        };
        Case::new(CLASS, name, &[], attempt).may_contact(SERVERS)
    };
    more.into_iter().chain(endings).map(case).collect()
}

/// Runs the script with the secrets of each turn.
fn compare_turns(world: &World, ending: &Ending, stemcell: u32, calls: usize) -> Result<(), String> {
    let mut first: Option<Observation> = None;
    for turn in TURNS {
        let (mut scenario, script) = ending.prepare(world, turn, Search::Nothing)?;
        scenario.job = with_long_lines(scenario.job);
        let script = observed(&json!({"method": "create_vm"}), &Value::Array(script));
        let script = script.as_array().map_or(&[][..], Vec::as_slice);
        let call = || scenario.create_vm(script).stemcell_api_version(stemcell);
        let secrets: Vec<String> = scenario.secrets.all().iter().map(|(_, secret)| secret.clone()).collect();
        let observed = observe_calls(world, &scenario.job, (0..calls).map(|_| call()), &secrets)?;
        if observed.leaked != ending.leaks() {
            return Err(format!("turn {turn}: the tripwire found a secret, or did not: {observed}"));
        }
        match &first {
            None => first = Some(observed),
            Some(first) => {
                if let Some(difference) = first.difference(&observed) {
                    return Err(format!("a guest can tell turn {} from turn {turn}: {difference}", TURNS[0]));
                }
            }
        }
    }
    Ok(())
}
