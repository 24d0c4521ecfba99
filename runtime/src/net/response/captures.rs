//! The third step: replaces the values that grants capture from a response by seals.

use super::ResponseInScreening;
use super::agent_settings::replace_in_text;
use super::documents::{fits_root, may_hold};
use super::screening::Screening;
use super::withheld::{WithheldKind, WithheldResponse};
use crate::vault::MAX_CAPTURE;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::Capture;
use wasm_cpi_policy::place::{FaultKind, Message, Place, PlaceError, parse_json};
use wasm_cpi_policy::secret::{Layer, Secret};

impl Screening<'_, '_> {
    /// Replaces the values to capture by seals.
    pub(super) fn seal_captured(&mut self, captures: &[Capture], layer: Layer) -> Result<(), WithheldResponse> {
        let ResponseInScreening { method, path, .. } = *self.response;
        // Two captures may name the same place: the second one finds the seal of the first.
        let mut seals = Vec::new();
        for capture in captures.iter().filter(|capture| capture.applies_to(method, path)) {
            self.seal_values(capture, layer, &mut seals)?;
        }
        Ok(())
    }

    /// Replaces the values of one capture by seals, and adds these to `seals`.
    fn seal_values(
        &mut self,
        capture: &Capture,
        layer: Layer,
        seals: &mut Vec<String>,
    ) -> Result<(), WithheldResponse> {
        let (vault, name) = (self.vault, &capture.name);
        let (mut too_long, mut too_many) = (false, false);
        let replaced = capture.place.replace_in_response(self.response.headers, self.response.body, &mut |value| {
            let fresh = !value.is_empty() && !seals.iter().any(|seal| seal == value);
            too_long |= Check::CaptureSize.refuses(value.len() > MAX_CAPTURE);
            (fresh && !too_long).then(|| vault.seal_captured(name, Secret::new(value), layer)).map(|seal| {
                too_many |= seal.is_none();
                seals.extend(seal.clone());
                seal.unwrap_or_default()
            })
        });
        if too_many {
            let why = format!(
                "the call has captured as many values as it may, and `{name}` is one too many; capture fewer values"
            );
            return Err(self.error(WithheldKind::Unreadable, &why).refused_by(Check::CaptureTotal));
        }
        if too_long {
            let why = format!(
                "the value `{name}` is longer than {MAX_CAPTURE} bytes, so it is not a credential; correct the grant's \
                 capture"
            );
            return Err(self.error(WithheldKind::Unreadable, &why).refused_by(Check::CaptureSize));
        }
        match replaced {
            Ok(true) => Ok(()),
            Ok(false) if has_shape_of(&capture.place, self.response.body) => Ok(()),
            // A list of objects, for example, holds the value elsewhere.
            Ok(false) => {
                let why =
                    format!("the value `{name}` is not in it, because it has another shape than the capture is for");
                let error = self.error(WithheldKind::Unreadable, &why).refused_by(Check::CaptureUnreadable);
                self.withhold(error)
            }
            Err(error) => self.reject_unreadable(capture, &error),
        }
    }

    /// Withholds a response whose value to capture cannot be read. An error of another type need not hold that
    /// value, and passes if it does not name it.
    fn reject_unreadable(&mut self, capture: &Capture, error: &PlaceError) -> Result<(), WithheldResponse> {
        let is_other_type = matches!(error.fault.kind, FaultKind::ContentType(_));
        let failed = !(200..300).contains(&self.response.status);
        let mut shown = self.response.body.clone();
        let is_clean = replace_in_text(&mut shown, &self.vault.search_deadline());
        if is_other_type && failed && is_clean && !may_hold([&capture.place], &shown) {
            return Ok(());
        }
        let accepted = Check::CaptureUnreadable.refuse(|| {
            let why = unreadable(error);
            let why = format!("the value `{}` cannot be captured: {why}; correct the grant's capture", capture.name);
            self.error(WithheldKind::Unreadable, &why)
        });
        if is_other_type { accepted.or_else(|error| self.withhold(error)) } else { accepted }
    }
}

/// Returns true if the body may hold a value to capture, and it cannot be captured. The vault does not know
/// such a value, so it would not be redacted.
pub(super) fn holds_uncaptured<'a>(
    mut captures: impl Iterator<Item = &'a Capture>,
    headers: &[(String, String)],
    body: &[u8],
) -> bool {
    captures.any(|capture| {
        let unread = capture.place.read(&Message { headers, body }).is_err() || !has_shape_of(&capture.place, body);
        unread && may_hold([&capture.place], body)
    })
}

/// Returns false if the document has another root than the place is for.
fn has_shape_of(place: &Place, body: &[u8]) -> bool {
    match (place.pointer(), parse_json(body)) {
        (Some(pointer), Ok(document)) => fits_root(pointer, &document),
        _ => true,
    }
}

/// Describes why a place cannot be read. Says nothing about the position of a syntax error, which
/// would measure the values before it.
fn unreadable(error: &PlaceError) -> String {
    match error.fault.kind {
        FaultKind::Malformed(_) => {
            format!("`{}`: the response is malformed, nested too deeply or has a key twice", error.place)
        }
        _ => error.to_string(),
    }
}
