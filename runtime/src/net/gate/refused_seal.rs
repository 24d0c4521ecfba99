//! Explains to operators what is missing when a request was refused because of a seal in it.

use super::{Gate, GrantedRequest};
use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::slots::SlotError;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::DenialReason;

impl Gate {
    /// Returns the error of a request with a seal that no slot takes. If the guest declares the
    /// slot, the policy is at fault and the hint is a line for it.
    pub(super) fn refused_seal(&self, error: SlotError, request: GrantedRequest<'_>) -> HttpError {
        let GrantedRequest { grant, method, destination, .. } = request;
        let SlotError { name, place, message, check } = error;
        let refused = |who, hint| HttpError {
            check,
            hint,
            ..HttpError::failed(who, HttpErrorKind::Denied(DenialReason::Slot), message)
        };
        if check == Some(Check::SealInUrl) {
            return refused(Who::Guest, self.expose_hint(&name));
        }
        let (Some(place), Some(Check::SealOutsideSlot | Check::SlotTakes)) = (place, check) else {
            return refused(Who::Guest, None);
        };
        let missing =
            self.policy.missing_slot(grant, destination, method.as_str(), request.operation_name(), &place, &name);
        refused(if missing.declared { Who::Policy } else { Who::Guest }, missing.hint)
    }

    /// Adds the property to expose to the error about a URL that is, or begins with, a seal.
    pub(super) fn sealed_url(&self, error: HttpError, url: &str) -> HttpError {
        let sealed = self.vault.seals_in(url.as_bytes()).first().and_then(|seal| self.vault.open(seal));
        let Some(sealed) = sealed else { return error };
        let what =
            format!("{}: it holds the seal of `{}`, whose value the guest does not see", error.message, sealed.name);
        HttpError { message: what, hint: self.expose_hint(&sealed.name), ..error }
    }

    /// Suggests to expose a property, unless it is a credential.
    fn expose_hint(&self, name: &str) -> Option<String> {
        self.vault.is_value(name).then(|| {
            let line = self.policy.line_to_expose(name);
            format!("if `{name}` is an address and not a secret, show it to the guest with this in the policy: {line}")
        })
    }
}
