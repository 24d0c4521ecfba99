//! Screens a response before the guest gets it.
//!
//! Values that the grant captures become new seals, whatever they are; other credentials are
//! removed, and the tripwire (`search`) searches the rest for known credentials. Fields that carry
//! credentials by their name (`adminPass`, `private_key`, `user_data` and the
//! like) stay, with null in JSON and no text in XML, so that a guest sees that
//! they exist. No part of a response that fails here may reach the guest, except the status of an
//! error and its headers, because guests decide by them.

mod captures;
mod charset;
mod fields;

#[cfg(test)]
mod tests;

pub(super) use captures::holds_uncaptured;
pub(super) use fields::{blank_shown, names_hidden_field};

use crate::net::cleaning::{holds_fixed_settings, replace_settings, withhold_settings};
use crate::net::withheld::{Reason, Withheld, withheld};
use crate::vault::{Patience, SearchStopped, Vault};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Capture;
use wasm_cpi_policy::secret::Layer;

/// A complete response on its way to the guest, and the request that it answers. It is screened in place.
pub struct ResponseInScreening<'a> {
    pub method: &'a str,
    /// The canonical path of the request.
    pub path: &'a str,
    pub status: u16,
    pub headers: &'a mut Vec<(String, String)>,
    pub body: &'a mut Vec<u8>,
}

/// Screens a response in place. `guarded` is true if the request sent secrets, or if a grant of the origin hides parts
/// of its responses (see `Exposure`). `layer` is the layer of the request's credentials, which captured
/// values get. Returns the body of an error that the guest does not see, for people; the caller redacts it.
pub fn screen(
    vault: &Vault,
    captures: &[Capture],
    guarded: bool,
    layer: Layer,
    response: &mut ResponseInScreening<'_>,
) -> Result<Option<String>, Withheld> {
    let mut screening = Screening::new(vault, captures, response);
    if guarded || !captures.is_empty() {
        screening.reject_encoded()?;
        screening.reject_foreign_charset()?;
    }
    screening.seal_captured(Check::CaptureValue.choose(captures, &[]), layer)?;
    screening.remove_credentials(guarded)?;
    Ok(screening.hidden)
}

/// The screening of one response.
struct Screening<'a, 'r> {
    vault: &'a Vault,
    response: &'a mut ResponseInScreening<'r>,
    /// True for an error response that may hold a value to capture which cannot be captured. The vault does not know
    /// that value and cannot redact it, so not even people see the body.
    uncaptured: bool,
    /// The body of an error response that was withheld, for people.
    hidden: Option<String>,
}

impl<'a, 'r> Screening<'a, 'r> {
    fn new(vault: &'a Vault, captures: &[Capture], response: &'a mut ResponseInScreening<'r>) -> Self {
        let ResponseInScreening { method, path, status, ref headers, ref body } = *response;
        let captures = captures.iter().filter(|capture| capture.applies_to(method, path));
        let uncaptured = status >= 400 && holds_uncaptured(captures, headers, body);
        Screening { vault, response, uncaptured, hidden: None }
    }

    /// Returns the error that withholds this response.
    fn withheld(&self, reason: Reason, why: &str) -> Withheld {
        withheld(self.response.method, self.response.path, reason, why)
    }

    /// Withholds the response. Of an error response (status 400 and above) only the body is withheld: people see
    /// it, and the guest gets status and headers.
    fn withhold(&mut self, reason: Withheld) -> Result<(), Withheld> {
        if holds_fixed_settings(self.response, &self.vault.patience()) {
            self.hidden = Some(not_shown(self.response.body));
            return withhold_settings(self.response);
        }
        if self.response.status < 400 {
            return Err(reason);
        }
        let body = &mut *self.response.body;
        self.hidden = if self.uncaptured { Some(not_shown(body)) } else { readable(body, &self.vault.patience()) };
        body.clear();
        Ok(())
    }

    fn reject_encoded(&mut self) -> Result<(), Withheld> {
        let encoded = !self.response.body.is_empty() && is_encoded(self.response.headers);
        let accepted = Check::EncodedResponse.ensure(!encoded, || {
            let why = "it is encoded (Content-Encoding, Transfer-Encoding), which is refused where secrets are sent; the \
                       server must respond without compression";
            self.withheld(Reason::Encoded, why)
        });
        accepted.or_else(|reason| self.withhold(reason))
    }

    fn reject_foreign_charset(&mut self) -> Result<(), Withheld> {
        let ResponseInScreening { method, path, ref headers, ref body, .. } = *self.response;
        let is_foreign = !body.is_empty() && charset::is_foreign(headers, body);
        if is_foreign {
            search_withheld(self.vault, method, path, body)?;
        }
        let accepted = Check::CharsetResponse.ensure(!is_foreign, || {
            let why = "it is text in another charset than UTF-8, or not text and not labelled as such, which is refused \
                       where secrets are sent; the server must respond in UTF-8";
            self.withheld(Reason::Encoded, why)
        });
        accepted.or_else(|reason| self.withhold(reason))
    }

    /// Removes headers that carry credentials, and blanks such fields of the body. Seals stay.
    fn remove_credentials(&mut self, guarded: bool) -> Result<(), Withheld> {
        let vault = self.vault;
        let ResponseInScreening { method, path, ref mut headers, ref mut body, .. } = *self.response;
        Check::CredentialHeaders
            .perform(|| headers.retain(|(name, value)| !carries_credential(name) || is_sealed(vault, name, value)));
        let is_seal = |text: &str| vault.open(text).is_some();
        let check = match Check::CredentialFields.perform(|| fields::blank(body, guarded, &is_seal)).unwrap_or(Ok(None))
        {
            Ok(None) => return Ok(()),
            Ok(Some(blanked)) => {
                **body = blanked;
                return Ok(());
            }
            Err(fields::Unreadable { check }) => check,
        };
        search_withheld(vault, method, path, body)?;
        let accepted = Check::CredentialUnreadable.refuse(|| {
            let why = "it names a field that carries credentials, and is not JSON or XML from which it can be \
                       removed; ask for JSON, and check the server";
            Withheld { check, ..self.withheld(Reason::Unreadable, why) }
        });
        accepted.or_else(|reason| self.withhold(reason))
    }
}

/// The tripwire: withholds a response that holds a credential. It searches what the guest would get, so everything
/// else must have been removed before: a captured value may be one that the guest chose.
pub fn search(vault: &Vault, response: &ResponseInScreening<'_>) -> Result<(), Withheld> {
    let parts = response.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let mut parts = parts.chain([response.body.as_slice()]);
    let leak = parts.find_map(|part| vault.leak_in(part).transpose()).transpose();
    reject_leak(leak, response.method, response.path)
}

/// Does the same for a text that is withheld for another reason, because a leak must be reported. Only credentials
/// of the operator and of the VM count.
pub(super) fn search_unseen(vault: &Vault, method: &str, path: &str, text: &[u8]) -> Result<(), Withheld> {
    reject_leak(vault.leak_in_unseen(text), method, path)
}

/// Does the same, unless the text holds agent settings: an honest guest may read a console that shows them.
fn search_withheld(vault: &Vault, method: &str, path: &str, text: &[u8]) -> Result<(), Withheld> {
    match replace_settings(&mut text.to_vec(), &vault.patience()) {
        true => search_unseen(vault, method, path, text),
        false => Ok(()),
    }
}

fn reject_leak(leak: Result<Option<String>, SearchStopped>, method: &str, path: &str) -> Result<(), Withheld> {
    let leak = leak.map_err(|stopped| withheld(method, path, Reason::Unreadable, &stopped.to_string()))?;
    Check::Tripwire.reject(leak, |name| {
        let why = format!("it holds the credential `{name}`");
        withheld(method, path, Reason::Leak(name), &why)
    })
}

/// Returns what people see of a body with values that must not be shown.
pub(super) fn not_shown(body: &[u8]) -> String {
    format!("{} bytes that name a hidden place or a field with credentials, not shown", body.len())
}

/// Returns a body for people, all of it, because it is redacted later; `None` if there is none. Fields
/// with credentials are blanked, and agent settings replaced, because the vault does not know these credentials.
pub(super) fn readable(body: &[u8], patience: &Patience<'_>) -> Option<String> {
    // A secret in another charset would not be redacted.
    if !charset::is_text(body) {
        return Some(format!("{} bytes that are not text in UTF-8", body.len()));
    }
    let blanked = Check::CredentialFields.perform(|| fields::blank(body, true, &|_| false));
    let Ok(blanked) = blanked.unwrap_or(Ok(None)) else { return Some(not_shown(body)) };
    let mut shown = blanked.unwrap_or_else(|| body.to_vec());
    if !replace_settings(&mut shown, patience) {
        return Some(not_shown(body));
    }
    let text = String::from_utf8_lossy(&shown).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn is_encoded(headers: &[(String, String)]) -> bool {
    let encodes =
        |name: &str| ["content-encoding", "transfer-encoding"].iter().any(|one| name.eq_ignore_ascii_case(one));
    let encodings = headers.iter().filter(|(name, _)| encodes(name));
    let encodings = encodings.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let (chunked, others): (Vec<&str>, Vec<&str>) =
        encodings.partition(|encoding| encoding.eq_ignore_ascii_case("chunked"));
    // The client removes one layer of chunks before the body arrives here.
    chunked.len() > 1
        || others.iter().any(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity"))
}

/// Returns true for headers of a response that carry credentials. The list is narrower than that of the trace, because
/// the guest needs the other headers: `WWW-Authenticate`, for example, only asks for credentials.
fn carries_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "set-cookie" | "set-cookie2" | "x-subject-token" | "x-auth-token" | "authorization")
        || name.starts_with("proxy-")
        || (name.ends_with("-token") && !name.contains("csrf"))
}

/// Returns true if a capture replaced the value of this header by a seal.
fn is_sealed(vault: &Vault, name: &str, value: &str) -> bool {
    let cookie = name.eq_ignore_ascii_case("set-cookie");
    let value = if cookie { value.split_once('=').map_or("", |(_, value)| value) } else { value };
    vault.open(value).is_some()
}
