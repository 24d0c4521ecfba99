//! The fourth step: removes headers that carry credentials by their name, and blanks such fields of the body.
//!
//! Fields (`adminPass`, `private_key`, `user_data` and the like) stay, with null in JSON and no text in XML, so that a
//! guest sees that they exist. The seals of captured values stay, too.

use super::screening::Screening;
use super::tripwire::search_withheld;
use super::withheld::{WithheldKind, WithheldResponse};
use super::{ResponseInScreening, fields};
use crate::vault::Vault;
use wasm_cpi_checks::Check;

impl Screening<'_, '_> {
    /// Removes the credentials of a response, or withholds it if its body names a field and cannot be parsed.
    pub(super) fn remove_credentials(&mut self, guarded: bool) -> Result<(), WithheldResponse> {
        let vault = self.vault;
        let ResponseInScreening { method, path, ref mut headers, ref mut body, .. } = *self.response;
        Check::CredentialHeaders
            .perform(|| headers.retain(|(name, value)| !carries_credential(name) || is_sealed(vault, name, value)));
        let is_seal = |text: &str| vault.open(text).is_some();
        let check = match Check::CredentialFields.perform_or(Ok(None), || fields::blank(body, guarded, &is_seal)) {
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
            WithheldResponse { check, ..self.error(WithheldKind::Unreadable, why) }
        });
        accepted.or_else(|error| self.withhold(error))
    }
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
