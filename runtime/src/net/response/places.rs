//! The first step: keeps the places that slots show, and removes those that grants drop.
//!
//! - Of the response to a request with a secret in a slot, the guest sees the status and the places that the slot
//!   shows. The JSON or XML document is written anew with these places alone.
//! - The places that any grant of the origin drops are removed from all its responses. A response in which they
//!   cannot be found for certain is withheld.

use super::withheld::{WithheldKind, WithheldResponse};
use super::{ResponseInScreening, Rules, documents, for_operators, keep_status_only};
use crate::vault::SearchStopped;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Slot;
use wasm_cpi_policy::place::Place;

/// Removes the hidden places of a response. Returns the text of an error response that the guest does not see, for
/// operators; the caller redacts it before it cuts it.
pub(super) fn remove_hidden(
    rules: &Rules<'_>,
    response: &mut ResponseInScreening<'_>,
) -> Result<Option<String>, WithheldResponse> {
    let ResponseInScreening { method, path, status, ref mut headers, ref mut body } = *response;
    let failed = status >= 400;
    let error = |why: &str| WithheldResponse::new(method, path, WithheldKind::NotCleaned, why);
    let over = |stopped: SearchStopped| error(&stopped.to_string());
    let mut hidden = None;
    // What the guest does not see must not decide about anything. So the places that it sees are kept first, and
    // agent settings are recognised in these places alone: a server may echo a secret beside a guest's text.
    if !rules.secret_names.is_empty() {
        if failed {
            hidden = for_operators::text_without_places(rules, headers, body).map_err(over)?;
        }
        Check::ShownPlaces.perform(|| {
            let filled = |slot: &&Slot| slot.applies_to(method, path, rules.operation) && rules.fills(slot);
            let shown = places_of_all(rules.grant.slots.iter().filter(filled));
            let captured = rules.hidden.captures.iter().filter(|one| one.applies_to(method, path));
            let captured: Vec<&Place> = captured.map(|one| &one.place).collect();
            documents::keep(&shown, &captured, headers, body);
        });
    }
    let dropped = Check::DroppedPlaces.perform_or(Ok(()), || documents::remove(&rules.hidden.drop, headers, body));
    let accepted = Check::DropUnreadable.reject(dropped.err(), |_| {
        let what = "the grants drop places of this origin's responses, and it is not a document in which they can be \
                    found";
        error(&format!("{what} (another kind than the places are for, malformed, or a key twice)"))
    });
    match accepted {
        Err(_) if failed => {
            if hidden.is_none() {
                hidden = for_operators::text_without_places(rules, headers, body).map_err(over)?;
            }
            keep_status_only(headers, body);
        }
        accepted => accepted?,
    }
    Ok(hidden)
}

impl Rules<'_> {
    fn fills(&self, slot: &Slot) -> bool {
        slot.takes.iter().any(|name| self.secret_names.contains(name))
    }
}

/// Returns the places that every slot shows: each secret is visible only where its own slot allows it.
fn places_of_all<'a>(mut slots: impl Iterator<Item = &'a Slot>) -> Vec<&'a Place> {
    let Some(first) = slots.next() else { return Vec::new() };
    let others: Vec<&Slot> = slots.collect();
    first.show.iter().filter(|place| others.iter().all(|slot| slot.show.contains(place))).collect()
}
