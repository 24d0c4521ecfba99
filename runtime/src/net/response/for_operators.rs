//! The text of an error response that the guest does not see, for operators.
//!
//! The caller redacts the text before it cuts it. The vault does not know the credentials that a server hands out, so
//! they are removed here.

use super::Rules;
use super::captures::holds_uncaptured;
use super::{agent_settings, charset, documents, fields};
use crate::vault::{SearchDeadline, SearchStopped};
use wasm_cpi_checks::Check;

/// Returns the text of an error response without the places that grants drop. Returns only the length of a text that
/// names a hidden place which cannot be found in it.
pub(super) fn text_without_places(
    rules: &Rules<'_>,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<Option<String>, SearchStopped> {
    let (hidden, mut headers, mut body) = (rules.hidden, headers.to_vec(), body.to_vec());
    if Check::SettingsWithheld.refuses(!agent_settings::replace_all(&mut headers, &mut body, rules.deadline)?) {
        return Ok(Some(not_shown(&body)));
    }
    let dropped = Check::DroppedPlaces.perform_or(Ok(()), || documents::remove(&hidden.drop, &mut headers, &mut body));
    let names_dropped = dropped.is_err() && documents::may_hold(&hidden.drop, &body);
    if names_dropped || holds_uncaptured(hidden.captures.iter(), &headers, &body) {
        return Ok(Some(not_shown(&body)));
    }
    Ok(text(&body, rules.deadline))
}

/// Returns a body as text, all of it, because it is redacted later; `None` if there is none. Fields with credentials
/// are blanked, and agent settings replaced.
pub(super) fn text(body: &[u8], deadline: &SearchDeadline<'_>) -> Option<String> {
    // A secret in another charset would not be redacted.
    if !charset::is_text(body) {
        return Some(format!("{} bytes that are not text in UTF-8", body.len()));
    }
    let blanked = Check::CredentialFields.perform_or(Ok(None), || fields::blank(body, true, &|_| false));
    let Ok(blanked) = blanked else { return Some(not_shown(body)) };
    let mut shown = blanked.unwrap_or_else(|| body.to_vec());
    if !agent_settings::replace_in_text(&mut shown, deadline) {
        return Some(not_shown(body));
    }
    let text = String::from_utf8_lossy(&shown).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns what operators see of a body with values that must not be shown.
pub(super) fn not_shown(body: &[u8]) -> String {
    format!("{} bytes that name a hidden place or a field with credentials, not shown", body.len())
}
