//! The errors of requests that were refused because of a seal in them.

use super::seal_location::SealLocation;
use crate::vault::Form;
use thiserror::Error;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::AGENT;
use wasm_cpi_policy::place::{Place, PlaceError};

/// A request that was refused because of a seal in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SlotError {
    /// The name of the sealed value.
    pub name: String,
    /// The place where it was found, if a policy can name it.
    pub place: Option<Place>,
    /// The message for guest and operator, with a remedy and without who failed.
    pub message: String,
    /// The check that refused, if one has a name.
    pub check: Option<Check>,
}

impl RefusedBy for SlotError {
    fn refused_by(self, check: Check) -> SlotError {
        SlotError { check: self.check.or(Some(check)), ..self }
    }
}

/// Builds the errors of one request.
pub(super) struct Refusal<'a> {
    pub method: &'a str,
    pub path: &'a str,
}

impl Refusal<'_> {
    fn error(&self, name: &str, place: Option<&Place>, why: &str) -> SlotError {
        let Refusal { method, path } = self;
        let message = format!("{method} {path} was not sent: the sealed value `{name}` {why}");
        SlotError { name: name.to_owned(), place: place.cloned(), message, check: None }
    }

    pub(super) fn in_url(&self, name: &str) -> SlotError {
        self.error(name, None, "is in the URL, where no secret is ever sent; the guest must send it in a slot")
    }

    pub(super) fn changed(&self, name: &str, how: Form) -> SlotError {
        let remedy = if name == AGENT {
            "the guest must send it as it is, and name the encoding it wants when it asks for agent settings"
        } else {
            "the guest must send it as it is; if the cloud wants it encoded, the operator configures the encoded value"
        };
        self.error(name, None, &format!("was changed by {how}; {remedy}"))
    }

    pub(super) fn outside(&self, name: &str, found: &SealLocation, fault: Option<&PlaceError>) -> SlotError {
        let (place, text) = (found.place.as_ref(), &found.text);
        if !found.complete && fault.is_none() {
            let why = format!("is within a longer text in {text}; it must be the complete value at its place");
            return self.error(name, place, &why);
        }
        let why = match fault {
            Some(fault) => format!("is in {text}, and a slot of the grant cannot be used: {fault}"),
            None => format!(
                "is in {text}, where the grant has no slot; if it belongs there, the operator adds a slot that takes \
                 `{name}`"
            ),
        };
        SlotError { check: fault.and_then(PlaceError::check), ..self.error(name, place, &why) }
    }

    pub(super) fn not_taken(&self, name: &str, place: &Place, takes: &[&str]) -> SlotError {
        let takes = takes.join("`, `");
        let why = format!(
            "is in `{place}`, whose slot takes `{takes}` only; if it belongs there, the operator adds `{name}` to \
             what the slot takes"
        );
        self.error(name, Some(place), &why)
    }

    pub(super) fn wrong_layer(&self, name: &str, place: &Place) -> SlotError {
        let why = "comes from the job's configuration, and the origin from the context, which must not get the job's \
                   secrets; configure both in the same place";
        self.error(name, Some(place), why)
    }

    pub(super) fn unwritable(&self, name: &str, error: &PlaceError) -> SlotError {
        let why = format!("cannot be put into its slot: {error}");
        SlotError { check: error.check(), ..self.error(name, None, &why) }
    }
}
