//! Replaces the seals of a request by secrets. No other module does that.
//!
//! A seal is replaced only if it is the complete value at a place, the grant has a
//! slot for that place which takes it, and the origin may have it. A request with
//! a seal at any other place, or with a changed seal, is refused before it is
//! sent: otherwise a guest could put a secret where it can read it back. No refusal
//! depends on a configured secret: whether it can be written into its slot was decided before
//! the guest ran.

mod refusal;
mod seal_location;

#[cfg(test)]
mod tests;

pub use refusal::SlotError;

use crate::vault::{Form, Sealed, Vault, random_text};
use refusal::Refusal;
use std::sync::Arc;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Slot;
use wasm_cpi_policy::place::{Message, Place, PlaceError, expect_utf8, replace_all, set_boundary, set_missing_type};
use wasm_cpi_policy::secret::Layer;

/// A request that the policy allows. Its seals are replaced in place.
pub struct RequestToFill<'a> {
    pub method: &'a str,
    /// The canonical path of its `Destination`.
    pub path: &'a str,
    /// Its operation, if the grant lists operations.
    pub operation: Option<&'a str>,
    /// The whole URL, as it will be sent.
    pub url: &'a str,
    pub headers: &'a mut Vec<(String, String)>,
    pub body: &'a mut Vec<u8>,
}

/// The secrets that were put into a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledSecrets {
    /// Names of the secrets that the request now holds, each once.
    pub names: Vec<String>,
    /// The layers that they were configured in.
    pub layers: Vec<Layer>,
    /// The seals of those in headers, which may authenticate the connection. Several captured values may have
    /// one name.
    pub in_headers: Vec<String>,
    /// True if one is where the host does not escape the end of a line: in a multipart form, XML, or as the
    /// whole body.
    pub in_free_text: bool,
}

/// A secret that will be written into a slot.
type PlannedSecret<'a> = (&'a Place, Arc<Sealed>);

/// A request without the seals that were in slots: the rest of it must hold none.
#[derive(Default)]
struct EmptiedRequest<'a> {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// What was in the slots.
    plan: Vec<PlannedSecret<'a>>,
    /// The seals that were in slots of headers and cookies.
    seals_in_headers: Vec<String>,
    /// The fault of the last slot that cannot be read.
    unusable_slot: Option<PlaceError>,
}

/// Fills the slots of a request to an origin that was configured in the layer `origin`.
/// An error leaves the request unchanged.
pub fn fill(
    vault: &Vault,
    slots: &[Slot],
    origin: Layer,
    request: RequestToFill<'_>,
) -> Result<FilledSecrets, SlotError> {
    let refuse = Refusal { method: request.method, path: request.path };
    reject_seal_in_url(vault, request.url, &refuse)?;
    if !holds_seals(vault, request.headers, request.body) {
        return Ok(FilledSecrets::default());
    }
    let here = |slot: &&Slot| slot.applies_to(request.method, request.path, request.operation);
    let slots: Vec<&Slot> = slots.iter().filter(|slot| Check::SlotSpot.accepts(here(slot))).collect();
    let emptied = empty_slots(vault, &slots, request.headers, request.body);
    reject_other_seals(vault, &emptied, &refuse)?;
    for planned in &emptied.plan {
        check_slot_takes(&slots, origin, planned, &refuse)?;
    }
    let EmptiedRequest { plan, seals_in_headers, .. } = emptied;
    write_secrets(request, &plan, seals_in_headers, &refuse)
}

/// Rejects a seal in the URL of a request, or in bytes of its body that no slot is for.
pub fn reject_seals(vault: &Vault, method: &str, path: &str, url: &str, bytes: &[u8]) -> Result<(), SlotError> {
    let refuse = Refusal { method, path };
    reject_seal_in_url(vault, url, &refuse)?;
    let rest = EmptiedRequest { body: bytes.to_vec(), ..EmptiedRequest::default() };
    reject_other_seals(vault, &rest, &refuse)
}

fn reject_seal_in_url(vault: &Vault, url: &str, refuse: &Refusal<'_>) -> Result<(), SlotError> {
    Check::SealInUrl.reject(seal_in(vault, url.as_bytes()), |name| refuse.in_url(&name))
}

/// Returns a copy of the request without the seals in its slots.
fn empty_slots<'a>(vault: &Vault, slots: &[&'a Slot], headers: &[(String, String)], body: &[u8]) -> EmptiedRequest<'a> {
    let mut emptied = EmptiedRequest { headers: headers.to_vec(), body: body.to_vec(), ..EmptiedRequest::default() };
    for slot in slots {
        let EmptiedRequest { headers, body, seals_in_headers, .. } = &mut emptied;
        let in_header = matches!(slot.place, Place::Header(_) | Place::Cookie(_));
        let mut found = None;
        let result = slot.place.expect_type(&Message { headers, body }).and_then(|()| {
            slot.place.replace(headers, body, &mut |value| {
                found = vault.open(value);
                seals_in_headers.extend((in_header && found.is_some()).then(|| value.to_owned()));
                found.as_ref().map(|_| String::new())
            })
        });
        match result {
            Ok(_) => emptied.plan.extend(found.map(|sealed| (&slot.place, sealed))),
            Err(error) => emptied.unusable_slot = Some(error),
        }
    }
    emptied
}

/// Rejects a request with a seal that was in no slot, or that was changed.
fn reject_other_seals(vault: &Vault, rest: &EmptiedRequest<'_>, refuse: &Refusal<'_>) -> Result<(), SlotError> {
    let EmptiedRequest { headers, body, plan, unusable_slot, .. } = rest;
    Check::SealTransformed.reject(transformed_in(vault, headers, body), |(name, how)| refuse.changed(&name, how))?;
    if let Some((_, sealed)) = plan.first()
        && plan.iter().any(|(place, _)| !matches!(place, Place::Header(_)))
    {
        Check::PlaceCharset.reject(expect_utf8(headers).err(), |error| refuse.unwritable(&sealed.name, &error))?;
    }
    Check::SealOutsideSlot.reject(seals(vault, headers, body).first(), |seal| {
        let name = vault.open(seal).map(|sealed| sealed.name.clone()).unwrap_or_default();
        refuse.outside(&name, &seal_location::locate(seal, headers, body), unusable_slot.as_ref())
    })
}

/// Rejects a secret that its slot does not take, or that the origin may not have.
fn check_slot_takes(
    slots: &[&Slot],
    origin: Layer,
    (place, sealed): &PlannedSecret<'_>,
    refuse: &Refusal<'_>,
) -> Result<(), SlotError> {
    let same_place = slots.iter().filter(|slot| slot.place == **place);
    let takes: Vec<&str> = same_place.flat_map(|slot| &slot.takes).map(String::as_str).collect();
    let taken = takes.contains(&sealed.name.as_str());
    Check::SlotTakes.ensure(taken, || refuse.not_taken(&sealed.name, place, &takes))?;
    Check::LayerProperty.ensure(sealed.layer.may_be_sent_to(origin), || refuse.wrong_layer(&sealed.name, place))
}

/// Writes the secrets into the request. An error leaves it unchanged.
fn write_secrets(
    request: RequestToFill<'_>,
    plan: &[PlannedSecret<'_>],
    seals_in_headers: Vec<String>,
    refuse: &Refusal<'_>,
) -> Result<FilledSecrets, SlotError> {
    let (mut headers, mut body) = (request.headers.clone(), request.body.clone());
    if let Some((_, sealed)) = plan.iter().find(|(place, _)| matches!(place, Place::Part(_))) {
        Check::HostBoundary
            .perform_or(Ok(()), || set_boundary(&mut headers, &mut body, &random_text()))
            .map_err(|error| refuse.unwritable(&sealed.name, &error))?;
    }
    if plan.iter().any(|(place, _)| matches!(place, Place::Body)) {
        set_missing_type(&mut headers);
    }
    let mut filled = FilledSecrets { in_headers: seals_in_headers, ..FilledSecrets::default() };
    for (place, sealed) in plan {
        place.check_value(sealed.secret.reveal()).map_err(|error| refuse.unwritable(&sealed.name, &error))?;
        filled.layers.push(sealed.layer);
        filled.in_free_text |= matches!(place, Place::Part(_) | Place::Xml(_) | Place::Body);
        if !filled.names.contains(&sealed.name) {
            filled.names.push(sealed.name.clone());
        }
    }
    // All at once: a body that is parsed again with a secret in it could be refused because of it.
    let places: Vec<&Place> = plan.iter().map(|(place, _)| *place).collect();
    replace_all(&places, &mut headers, &mut body, &mut |number, _| Some(plan[number].1.secret.reveal().to_owned()))
        .map_err(|error| refuse.unwritable(plan.first().map_or("", |(_, sealed)| &sealed.name), &error))?;
    (*request.headers, *request.body) = (headers, body);
    Ok(filled)
}

/// Returns the name of a seal in the bytes, even if it was changed.
fn seal_in(vault: &Vault, bytes: &[u8]) -> Option<String> {
    let verbatim = vault.seals_in(bytes).first().and_then(|seal| vault.open(seal)).map(|sealed| sealed.name.clone());
    verbatim.or_else(|| vault.transformed_seal_in(bytes).map(|(name, _)| name))
}

fn holds_seals(vault: &Vault, headers: &[(String, String)], body: &[u8]) -> bool {
    !seals(vault, headers, body).is_empty() || transformed_in(vault, headers, body).is_some()
}

/// Returns the unchanged seals in a request.
fn seals(vault: &Vault, headers: &[(String, String)], body: &[u8]) -> Vec<String> {
    parts(headers, body).flat_map(|part| vault.seals_in(part)).collect()
}

fn transformed_in(vault: &Vault, headers: &[(String, String)], body: &[u8]) -> Option<(String, Form)> {
    parts(headers, body).find_map(|part| vault.transformed_seal_in(part))
}

/// Returns all parts of a request to search, also the names of headers: a seal is a valid name.
fn parts<'a>(headers: &'a [(String, String)], body: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]).chain([body])
}
