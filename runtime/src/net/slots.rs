//! Replaces the seals of a request by secrets. No other module does that.
//!
//! A seal is replaced only if it is the complete value at a place, the grant has a
//! slot for that place which takes it, and the origin may have it. A request with
//! a seal at any other place, or with a changed seal, is refused before it is
//! sent: otherwise a guest could put a secret where it can read it back. No refusal
//! depends on a configured secret: whether it can be written into its slot was decided before
//! the guest ran.

mod seal_location;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use thiserror::Error;

use crate::vault::{Form, Sealed, Vault, random_text};
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::place::{Message, Place, PlaceError, expect_utf8, replace_all, set_boundary, set_missing_type};
use wasm_cpi_policy::secret::Layer;
use wasm_cpi_policy::{AGENT, Slot};

/// A request that the policy allows. Its seals are replaced in place.
pub struct RequestToFill<'a> {
    pub method: &'a str,
    /// The canonical path of its `Destination`.
    pub path: &'a str,
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
    /// The seals of those in headers, which may authenticate the connection. A name may stand for several captured
    /// values.
    pub in_headers: Vec<String>,
    /// True if one is where the host does not escape the end of a line: in a multipart form, XML, or as the
    /// whole body.
    pub in_free_text: bool,
}

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

/// Fills the slots of a request to an origin that was configured in the layer `origin`.
/// An error leaves the request unchanged.
pub fn fill(
    vault: &Vault,
    slots: &[Slot],
    origin: Layer,
    request: RequestToFill<'_>,
) -> Result<FilledSecrets, SlotError> {
    let refuse = Refusal { method: request.method, path: request.path };
    Check::SealInUrl.reject(seal_in(vault, request.url.as_bytes()), |name| refuse.in_url(&name))?;
    if !holds_seals(vault, request.headers, request.body) {
        return Ok(FilledSecrets::default());
    }
    let here = |slot: &&Slot| slot.method == request.method && slot.path.matches(request.path);
    let slots: Vec<&Slot> = slots.iter().filter(|slot| Check::SlotSpot.accepts(here(slot))).collect();

    // Remove the seals from their slots first: the rest of the request must hold none.
    let (mut headers, mut body) = (request.headers.clone(), request.body.clone());
    let mut plan: Vec<(&Place, Arc<Sealed>)> = Vec::new();
    let mut fault = None;
    let mut filled = FilledSecrets::default();
    for slot in &slots {
        let mut found = None;
        let in_header = matches!(slot.place, Place::Header(_) | Place::Cookie(_));
        let emptied = slot.place.expect_type(&Message { headers: &headers, body: &body }).and_then(|()| {
            slot.place.replace(&mut headers, &mut body, &mut |value| {
                found = vault.open(value);
                filled.in_headers.extend((in_header && found.is_some()).then(|| value.to_owned()));
                found.as_ref().map(|_| String::new())
            })
        });
        match emptied {
            Ok(_) => plan.extend(found.map(|sealed| (&slot.place, sealed))),
            Err(error) => fault = Some(error),
        }
    }
    Check::SealTransformed.reject(transformed_in(vault, &headers, &body), |(name, how)| refuse.changed(&name, how))?;
    if let Some((_, sealed)) = plan.first()
        && plan.iter().any(|(place, _)| !matches!(place, Place::Header(_)))
    {
        Check::PlaceCharset.reject(expect_utf8(&headers).err(), |error| refuse.unwritable(&sealed.name, &error))?;
    }
    Check::SealOutsideSlot.reject(seals(vault, &headers, &body).first(), |seal| {
        let name = vault.open(seal).map(|sealed| sealed.name.clone()).unwrap_or_default();
        refuse.outside(&name, &seal_location::locate(seal, &headers, &body), fault.as_ref())
    })?;
    for (place, sealed) in &plan {
        let takes: Vec<&str> = slots
            .iter()
            .filter(|slot| slot.place == **place)
            .flat_map(|slot| &slot.takes)
            .map(String::as_str)
            .collect();
        let taken = takes.contains(&sealed.name.as_str());
        Check::SlotTakes.ensure(taken, || refuse.not_taken(&sealed.name, place, &takes))?;
        Check::LayerProperty.ensure(sealed.layer.may_go_to(origin), || refuse.wrong_layer(&sealed.name, place))?;
    }

    let (mut headers, mut body) = (request.headers.clone(), request.body.clone());
    if let Some((_, sealed)) = plan.iter().find(|(place, _)| matches!(place, Place::Part(_))) {
        Check::HostBoundary
            .perform(|| set_boundary(&mut headers, &mut body, &random_text()))
            .unwrap_or(Ok(()))
            .map_err(|error| refuse.unwritable(&sealed.name, &error))?;
    }
    if plan.iter().any(|(place, _)| matches!(place, Place::Body)) {
        set_missing_type(&mut headers);
    }
    for (place, sealed) in &plan {
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

/// Builds the errors of one request.
struct Refusal<'a> {
    method: &'a str,
    path: &'a str,
}

impl Refusal<'_> {
    fn error(&self, name: &str, place: Option<&Place>, why: &str) -> SlotError {
        let Refusal { method, path } = self;
        let message = format!("{method} {path} was not sent: the sealed value `{name}` {why}");
        SlotError { name: name.to_owned(), place: place.cloned(), message, check: None }
    }

    fn in_url(&self, name: &str) -> SlotError {
        self.error(name, None, "stands in the URL, where no secret is ever sent; the guest must send it in a slot")
    }

    fn changed(&self, name: &str, how: Form) -> SlotError {
        let remedy = if name == AGENT {
            "the guest must send it as it is, and name the encoding it wants when it asks for agent settings"
        } else {
            "the guest must send it as it is; if the cloud wants it encoded, the operator configures the encoded value"
        };
        self.error(name, None, &format!("was changed by {how}; {remedy}"))
    }

    fn outside(&self, name: &str, found: &seal_location::SealLocation, fault: Option<&PlaceError>) -> SlotError {
        let (place, text) = (found.place.as_ref(), &found.text);
        if !found.complete && fault.is_none() {
            let why = format!("stands within a longer text in {text}; it must be the complete value at its place");
            return self.error(name, place, &why);
        }
        let why = match fault {
            Some(fault) => format!("stands in {text}, and a slot of the grant cannot be used: {fault}"),
            None => format!(
                "stands in {text}, where the grant has no slot; if it belongs there, the operator adds a slot that takes \
                 `{name}`"
            ),
        };
        SlotError { check: fault.and_then(PlaceError::check), ..self.error(name, place, &why) }
    }

    fn not_taken(&self, name: &str, place: &Place, takes: &[&str]) -> SlotError {
        let takes = takes.join("`, `");
        let why = format!(
            "stands in `{place}`, whose slot takes `{takes}` only; if it belongs there, the operator adds `{name}` to \
             what the slot takes"
        );
        self.error(name, Some(place), &why)
    }

    fn wrong_layer(&self, name: &str, place: &Place) -> SlotError {
        let why = "comes from the job's configuration, and the origin from the context, which must not get the job's \
                   secrets; configure both in the same place";
        self.error(name, Some(place), why)
    }

    fn unwritable(&self, name: &str, error: &PlaceError) -> SlotError {
        let why = format!("cannot be put into its slot: {error}");
        SlotError { check: error.check(), ..self.error(name, None, &why) }
    }
}
