//! How much a request's responses could expose to the guest.

use wasm_cpi_policy::{Cleaning, Grant};

/// How much the responses to a request could expose to the guest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exposure {
    /// True if the grant has auth, slots or a client certificate: its responses may hold secrets.
    pub sends_secrets: bool,
    /// True if a grant of the origin has slots, captures or `drop`: the guest does not see everything of the
    /// origin's responses.
    pub hides_places: bool,
}

impl Exposure {
    /// Returns the exposure of a request that `grant` allows. `cleaning` is what the grants of the origin hide.
    pub(super) fn of(grant: &Grant, cleaning: &Cleaning) -> Exposure {
        let sends_secrets = grant.auth.is_some() || !grant.slots.is_empty() || grant.tls.client.is_some();
        Exposure { sends_secrets, hides_places: cleaning.applies }
    }

    /// Returns true if responses must be searched, and forms of them that cannot be searched are refused.
    pub(super) fn is_guarded(self) -> bool {
        self.sends_secrets || self.hides_places
    }
}
