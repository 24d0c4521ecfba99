//! The last step: searches the response for known credentials. A hit withholds the response and ends the call.

use super::ResponseInScreening;
use super::agent_settings;
use super::withheld::{WithheldKind, WithheldResponse};
use crate::vault::{SearchStopped, Vault};
use wasm_cpi_checks::Check;

/// Withholds a response that holds a credential. It searches what the guest would get, so everything else must
/// have been removed before: a captured value may be one that the guest chose.
pub fn search(vault: &Vault, response: &ResponseInScreening<'_>) -> Result<(), WithheldResponse> {
    let parts = response.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let mut parts = parts.chain([response.body.as_slice()]);
    let leak = parts.find_map(|part| vault.leak_in(part).transpose()).transpose();
    reject_leak(leak, response.method, response.path)
}

/// Searches a body that is withheld for another reason, because a leak in it must be reported, too. Only credentials
/// of the operator and of the VM count. A body that shows agent settings is not searched: an honest guest may read a
/// console that shows them.
pub(super) fn search_withheld(vault: &Vault, method: &str, path: &str, body: &[u8]) -> Result<(), WithheldResponse> {
    match agent_settings::replace_in_text(&mut body.to_vec(), &vault.search_deadline()) {
        true => reject_leak(vault.leak_in_unseen(body), method, path),
        false => Ok(()),
    }
}

fn reject_leak(leak: Result<Option<String>, SearchStopped>, method: &str, path: &str) -> Result<(), WithheldResponse> {
    let leak =
        leak.map_err(|stopped| WithheldResponse::new(method, path, WithheldKind::Unreadable, &stopped.to_string()))?;
    Check::Tripwire.reject(leak, |name| {
        let why = format!("it holds the credential `{name}`");
        WithheldResponse::new(method, path, WithheldKind::Leak(name), &why)
    })
}
