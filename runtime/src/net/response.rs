//! Removes from a response what the guest must not see.
//!
//! What a guest sees must not depend on a secret. So the values that a guest must not see are found by where they are
//! and what they look like, and never by comparison with a secret; only the tripwire compares. Each step may withhold
//! the response. An error response that is withheld keeps its status, because guests decide by it, and operators see
//! the rest. A response passes these steps in this order, each in a file of its own:
//!
//! 1. `places` keeps the places that slots show, and removes those that grants drop. `signatures` replaces the texts of
//!    errors that quote what the host signed.
//! 2. `encoding` withholds a body that cannot be searched.
//! 3. `captures` replaces the values that grants capture by seals.
//! 4. `credential_fields` removes headers and blanks fields that carry credentials by their name.
//! 5. `digests` removes validators, digests and lengths, which are those of the whole response. If the guest may see
//!    all of the response and it has a body, this is done after the next step, and only if the body was changed.
//! 6. `agent_settings` replaces agent settings. Values that earlier steps removed or sealed are gone by then, so they
//!    decide nothing.
//! 7. `tripwire` searches the rest for known credentials.
//!
//! `screening` holds what the steps 2 to 4 share. The other files are below the steps: `documents`, `fields`, `charset`
//! and `raw_text` read bodies, `for_operators` makes the texts of hidden errors, and `withheld` is the error.

pub mod agent_settings;
mod captures;
mod charset;
mod credential_fields;
mod digests;
mod documents;
mod encoding;
mod fields;
mod for_operators;
mod places;
mod raw_text;
mod screening;
mod signatures;
mod tripwire;
mod withheld;

#[cfg(test)]
mod tests;

pub(super) use fields::{blank_shown, names_hidden_field};
pub(super) use raw_text::without_percent;
pub use screening::seal_and_blank;
pub use tripwire::search;
pub use withheld::{WithheldKind, WithheldResponse};

use crate::net::exposure::Exposure;
use crate::vault::{SearchDeadline, Vault};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Layer;
use wasm_cpi_policy::{Grant, HiddenPlaces};

/// A complete response on its way to the guest, and the request that it answers. It is changed in place.
pub struct ResponseInScreening<'a> {
    pub method: &'a str,
    /// The canonical path of the request.
    pub path: &'a str,
    pub status: u16,
    pub headers: &'a mut Vec<(String, String)>,
    pub body: &'a mut Vec<u8>,
}

impl ResponseInScreening<'_> {
    /// Returns true if the response can have a body.
    fn may_have_body(&self) -> bool {
        self.method != "HEAD" && !matches!(self.status, 204 | 304)
    }

    /// Returns false if validators, digests and lengths of the response are those of a document that it does not hold.
    /// Those in the response to a PUT are of what the guest sent, and those in the response to a GET are of its body.
    fn has_own_body(&self) -> bool {
        let of_request = self.method == "PUT" && self.status != 304;
        let of_body = self.method == "GET" || !self.body.is_empty();
        of_request || (of_body && self.may_have_body())
    }
}

/// What decides about a response.
pub(super) struct Rules<'a> {
    pub grant: &'a Grant,
    /// The operation of the request, if the grant lists operations.
    pub operation: Option<&'a str>,
    /// What the grants of the origin hide.
    pub hidden: &'a HiddenPlaces,
    /// The names of the secrets that the request held.
    pub secret_names: &'a [String],
    /// The layer of the request's credentials, which captured values get.
    pub layer: Layer,
    /// Ends the search for agent settings with the call.
    pub deadline: &'a SearchDeadline<'a>,
}

/// What is known of a response from which everything was removed that the guest must not see.
pub(super) struct Screened {
    /// The text of an error response that the guest does not see. The caller redacts it.
    pub hidden: Option<String>,
    /// True if the headers no longer say how long the body is.
    pub is_reframed: bool,
}

/// Removes from a response what the guest must not see.
pub(super) fn hide_secrets(
    vault: &Vault,
    rules: &Rules<'_>,
    response: &mut ResponseInScreening<'_>,
) -> Result<Screened, WithheldResponse> {
    let Rules { grant, hidden, layer, deadline, .. } = *rules;
    let guarded = Exposure::of(grant, hidden).is_guarded();
    // Without a body, the guest cannot know whether something was removed from it.
    let sees_all = !guarded && response.has_own_body();
    let whole = sees_all.then(|| response.body.clone());
    let hidden_text = places::remove_hidden(rules, response)?;
    signatures::replace_quotations(grant, response);
    let captures = Check::OriginRules.choose(&hidden.captures, &grant.captures);
    let hidden_body = seal_and_blank(vault, captures, guarded, layer, response)?;
    let is_seal = |value: &str| vault.open(value).is_some();
    let remove_digests =
        |headers: &mut Vec<(String, String)>| Check::ResponseDigests.perform(|| digests::remove(headers, &is_seal));
    // What is removed must not take part in recognising agent settings.
    let mut removed = (!sees_all).then(|| remove_digests(response.headers)).flatten();
    agent_settings::replace_settings(response, deadline)?;
    // Elsewhere, the guest sees all of the response unless a step changed it.
    if whole.is_some_and(|whole| whole != *response.body) {
        removed = remove_digests(response.headers);
    }
    search(vault, response)?;
    Ok(Screened { hidden: hidden_text.or(hidden_body), is_reframed: removed.is_some() })
}

/// Removes headers and body of a response.
fn keep_status_only(headers: &mut Vec<(String, String)>, body: &mut Vec<u8>) {
    headers.clear();
    body.clear();
}
