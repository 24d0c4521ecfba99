//! Finds what is missing when a request was refused because of a seal in it: a slot of the grant, or of the needs.

use super::Policy;
use super::grant::Grant;
use super::hint::Hint;
use super::needs::Restriction;
use super::path::PathPattern;
use super::slots::Slot;
use super::suggested_grant::slot_json;
use crate::destination::Destination;
use crate::place::Place;

/// What is to be done about a request that was refused because a seal is where no slot takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSlot {
    /// True if the guest declares the slot, so that only the policy lacks it.
    pub declared: bool,
    /// The line to add, for operators.
    pub hint: Option<String>,
}

impl Policy {
    /// Returns what is missing for the secret `name` at a place of a request that `grant` allows. `operation` is
    /// that of the request, if the grant lists operations.
    pub fn missing_slot(
        &self,
        grant: &Grant,
        destination: &Destination,
        method: &str,
        operation: Option<&str>,
        place: &Place,
        name: &str,
    ) -> MissingSlot {
        // The path as the grant has it, because a slot must be within the paths of its grant.
        let whole = grant.shared.paths.iter().zip(&grant.paths);
        let granted: Vec<&PathPattern> =
            whole.filter(|(_, whole)| whole.matches(destination.path())).map(|(path, _)| path).collect();
        let mut declared = None;
        for need in self.declared.iter().flatten().filter(|need| need.covers(&grant.origin)) {
            match &need.need.slots {
                Restriction::Any => declared = declared.or(granted.first().map(|path| ((*path).clone(), Vec::new()))),
                Restriction::Only(slots) => {
                    let fits = |slot: &&Slot| {
                        let takes = slot.takes.iter().any(|taken| taken == name);
                        let here = slot.below(&need.base).path.matches(destination.path());
                        let same = slot.method == method && slot.place == *place;
                        same && takes && here && slot.is_for_operation(operation)
                    };
                    let found = slots.iter().find(fits).and_then(|slot| {
                        let path = granted.iter().find_map(|path| path.intersect(&slot.path))?;
                        Some((path, slot.show.clone()))
                    });
                    declared = declared.or(found);
                }
            }
        }
        if self.declared.is_none() {
            declared = granted.first().map(|path| ((*path).clone(), Vec::new()));
        }
        let suggested = declared.clone().or(granted.first().map(|path| ((*path).clone(), Vec::new())));
        let line = suggested.map(|(path, show)| {
            let (method, place, takes) = (method.to_owned(), place.clone(), vec![name.to_owned()]);
            let operation = operation.map(str::to_owned);
            slot_json(&Slot { method, path, operation, place, takes, show, max_bytes: None }).to_string()
        });
        let hint = match (line, &declared) {
            (None, _) => None,
            (Some(line), Some(_)) => {
                let id = &grant.id;
                Some(format!(
                    "the guest asks for this slot; if it should have it, add to \"slots\" of grant `{id}`: {line}"
                ))
            }
            (Some(line), None) => Some(Hint::Needs(format!("under \"slots\" of the need: {line}")).to_string()),
        };
        MissingSlot { declared: declared.is_some(), hint }
    }
}
