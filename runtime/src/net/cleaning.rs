//! Cleans a response by place before `screening` screens it, and by marker and shape afterwards.
//!
//! What a guest sees must not depend on a secret. So the values that a guest must not see are found
//! by where they are and what they look like, and never by comparison with a secret:
//!
//! - Of the response to a request with a filled slot, the guest sees the status and the places that
//!   the slot shows. The JSON or XML document is written anew with these places alone.
//! - The places that any grant of the origin drops are removed from all its responses. A response in
//!   which they cannot be found for certain is withheld.
//! - Agent settings are replaced in any response; `settings` recognises them. A response that shows them in
//!   pieces is withheld. Values that `screening` removes or seals are gone by then, so they decide nothing.
//! - Validators, digests and lengths are removed where the guest does not see everything: they are
//!   those of the whole response.
//!
//! An error response that is withheld keeps its status, because guests decide by it. The rest goes to
//! people.

mod digests;
pub(super) mod documents;
mod settings;

#[cfg(test)]
mod tests;

pub use settings::{MARKER, holds_marker};

use super::screening::{self, ResponseInScreening, readable};
use super::withheld::{self, Reason, Withheld};
use crate::vault::{Patience, SearchStopped};
pub(super) use digests::remove as remove_digests;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::Place;
use wasm_cpi_policy::{Grant, HiddenPlaces, Slot};

/// What stands in a response in place of agent settings.
pub(super) const PLACEHOLDER: &str = "(withheld: agent settings)";

/// What decides about a response.
pub struct Rules<'a> {
    pub grant: &'a Grant,
    /// What the grants of the origin hide.
    pub cleaning: &'a HiddenPlaces,
    /// The names of the secrets that the request held.
    pub filled: &'a [String],
    /// Ends the search for agent settings with the call.
    pub patience: &'a Patience<'a>,
}

/// Cleans a response by place, in place. Returns the text of an error response that the guest does not see, for
/// people; the caller redacts it before it cuts it.
pub fn clean(rules: &Rules<'_>, response: &mut ResponseInScreening<'_>) -> Result<Option<String>, Withheld> {
    let ResponseInScreening { method, path, status, ref mut headers, ref mut body } = *response;
    let failed = status >= 400;
    let withheld = |why: &str| withheld::withheld(method, path, Reason::NotCleaned, why);
    let over = |stopped: SearchStopped| withheld(&stopped.to_string());
    let mut hidden = None;
    // What the guest does not see must not decide about anything. So the places that it sees are kept first, and
    // agent settings are recognised in these places alone: a server may echo a secret beside a guest's text.
    if !rules.filled.is_empty() {
        if failed {
            hidden = for_people(rules, headers, body).map_err(over)?;
        }
        Check::ShownPlaces.perform(|| {
            let filled = |slot: &&Slot| slot.method == method && slot.path.matches(path) && rules.fills(slot);
            let shown = places_of_all(rules.grant.slots.iter().filter(filled));
            let captured = rules.cleaning.captures.iter().filter(|one| one.applies_to(method, path));
            let captured: Vec<&Place> = captured.map(|one| &one.place).collect();
            documents::keep(&shown, &captured, headers, body);
        });
    }
    let dropped =
        Check::DroppedPlaces.perform(|| documents::remove(&rules.cleaning.drop, headers, body)).unwrap_or(Ok(()));
    let accepted = Check::DropUnreadable.reject(dropped.err(), |_| {
        let what = "the grants drop places of this origin's responses, and it is not a document in which they can be \
                    found";
        withheld(&format!("{what} (another kind than the places are for, malformed, or a key twice)"))
    });
    match accepted {
        Err(_) if failed => {
            if hidden.is_none() {
                hidden = for_people(rules, headers, body).map_err(over)?;
            }
            keep_status_only(headers, body);
        }
        accepted => accepted?,
    }
    Ok(hidden)
}

/// Replaces agent settings in a response that was screened, or withholds it. Ends with the call.
pub fn clean_settings(response: &mut ResponseInScreening<'_>, patience: &Patience<'_>) -> Result<(), Withheld> {
    let ResponseInScreening { method, path, status, ref mut headers, ref mut body } = *response;
    let withheld = |why: &str| withheld::withheld(method, path, Reason::NotCleaned, why);
    let replaced =
        settings::replace(headers, body, patience).map_err(|stopped: SearchStopped| withheld(&stopped.to_string()))?;
    let accepted = Check::SettingsWithheld.ensure(replaced, || {
        withheld(
            "it holds agent settings in pieces, or is not JSON or XML from which they can be removed; do not ask for \
             it, or list the places that show them under `drop` of the grant",
        )
    });
    match accepted {
        Err(_) if status >= 400 => {
            keep_status_only(headers, body);
            Ok(())
        }
        accepted => accepted,
    }
}

/// Replaces agent settings in a text for people. Returns false if they cannot be removed.
pub(super) fn replace_settings(text: &mut Vec<u8>, patience: &Patience<'_>) -> bool {
    Check::SettingsWithheld.accepts(settings::replace(&mut [], text, patience) == Ok(true))
}

impl Rules<'_> {
    fn fills(&self, slot: &Slot) -> bool {
        slot.takes.iter().any(|name| self.filled.contains(name))
    }
}

/// Returns the places that every slot shows: each secret is visible only where its own slot allows it.
fn places_of_all<'a>(mut slots: impl Iterator<Item = &'a Slot>) -> Vec<&'a Place> {
    let Some(first) = slots.next() else { return Vec::new() };
    let others: Vec<&Slot> = slots.collect();
    first.show.iter().filter(|place| others.iter().all(|slot| slot.show.contains(place))).collect()
}

/// Returns the text of an error response for people, without the places that grants drop. Returns nothing
/// of a text that names one and in which it cannot be found.
fn for_people(rules: &Rules<'_>, headers: &[(String, String)], body: &[u8]) -> Result<Option<String>, SearchStopped> {
    let (cleaning, mut headers, mut body) = (rules.cleaning, headers.to_vec(), body.to_vec());
    if Check::SettingsWithheld.refuses(!settings::replace(&mut headers, &mut body, rules.patience)?) {
        return Ok(Some(screening::not_shown(&body)));
    }
    let found = Check::DroppedPlaces.perform(|| documents::remove(&cleaning.drop, &mut headers, &mut body));
    let dropped = found.is_some_and(|found| found.is_err()) && documents::may_hold(&cleaning.drop, &body);
    if dropped || screening::holds_uncaptured(cleaning.captures.iter(), &headers, &body) {
        return Ok(Some(screening::not_shown(&body)));
    }
    Ok(readable(&body, rules.patience))
}

/// Removes headers and body of a response.
fn keep_status_only(headers: &mut Vec<(String, String)>, body: &mut Vec<u8>) {
    headers.clear();
    body.clear();
}

/// Returns a JSON object without agent settings; an empty one if they cannot be removed. It is for
/// documents that do not come with headers.
pub fn clean_json(text: &str) -> String {
    let mut body = text.as_bytes().to_vec();
    let is_clean = settings::replace(&mut [], &mut body, &Patience::unlimited()) == Ok(true);
    is_clean.then(|| String::from_utf8(body).ok()).flatten().unwrap_or_else(|| "{}".to_owned())
}
