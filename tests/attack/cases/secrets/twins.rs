//! Twin runs of a guest that uses everything, with secrets of all shapes in all fields.

use super::scenario::{SERVERS, Scenario, Search};
use super::secret_set::seed;
use crate::case::Case;
use crate::twins::{CLASS, Observation, observe_calls, observed, with_long_lines};
use crate::world::World;
use serde_json::{Value, json};

/// Each turn puts secrets of other shapes into the fields.
const TURNS: [usize; 3] = [0, 3, 6];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, attempt: fn(&World) -> Result<(), String>| {
        Case::new(CLASS, name, &[], move |world| attempt(world).map_err(|why| format!("ATTACK_SEED={}: {why}", seed())))
            .may_contact(SERVERS)
    };
    vec![
        case("secrets of all shapes in every field, used in every way", |world| {
            compare_turns(world, &json!([{"op": "config"}, {"op": "clock.ending"}]), 2)
        }),
        case("secrets of all shapes in every field, used in every way with a registry", |world| {
            let registry = json!([
                {"op": "agent.created", "vm": "vm-2", "key": "vm-2"}, {"op": "registry.get", "id": "vm-2"},
                {"op": "agent.attached", "key": "vm-2", "disk": "disk-1", "hint": "/dev/sdx"}, {"op": "agent.deleted", "key": "vm-2"},
            ]);
            compare_turns(world, &registry, 1)
        }),
    ]
}

/// Runs the script that uses everything, and then these operations, with the secrets of
/// each turn.
fn compare_turns(world: &World, operations: &Value, stemcell: u32) -> Result<(), String> {
    let mut first: Option<Observation> = None;
    for turn in TURNS {
        let mut scenario = Scenario::new(world, turn);
        scenario.search = Search::Nothing;
        scenario.job = with_long_lines(scenario.job);
        scenario.set_up(world)?;
        let mut script = scenario.use_everything();
        script.extend(operations.as_array().into_iter().flatten().cloned());
        let script = observed(&json!({"method": "create_vm"}), &Value::Array(script));
        let call = scenario.create_vm(script.as_array().map_or(&[][..], Vec::as_slice)).stemcell(stemcell);
        let secrets: Vec<String> = scenario.secrets.all().iter().map(|(_, secret)| secret.clone()).collect();
        let observed = observe_calls(world, &scenario.job, std::iter::once(call), &secrets)?;
        if observed.leaked {
            return Err(format!("turn {turn}: the tripwire found a secret: {observed}"));
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
