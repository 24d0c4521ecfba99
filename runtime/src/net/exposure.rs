//! Tells from a grant and its origin how strictly the gate treats a request and its response.

use wasm_cpi_policy::{Grant, HiddenPlaces};

/// How much the responses to a request could expose to the guest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exposure {
    /// True if the grant has auth, slots or a client certificate: its responses may hold secrets.
    pub sends_secrets: bool,
    /// True if a grant of the origin has slots, captures or `drop`: the guest does not see everything of the
    /// origin's responses.
    pub hides_values: bool,
}

impl Exposure {
    /// Returns the exposure of a request that `grant` allows. `hidden` is what the grants of the origin hide.
    pub(super) fn of(grant: &Grant, hidden: &HiddenPlaces) -> Exposure {
        let sends_secrets = grant.auth.is_some() || !grant.slots.is_empty() || grant.tls.client.is_some();
        Exposure { sends_secrets, hides_values: hidden.hides_values }
    }

    /// Returns true if responses must be searched, and forms of them that cannot be searched are refused.
    pub(super) fn is_guarded(self) -> bool {
        self.sends_secrets || self.hides_values
    }
}
