//! A response as the guest may see it.
//!
//! Values that the grant captures become new seals; credentials that nobody
//! captured are taken out; then the tripwire looks for known secrets in what
//! is left. Fields that carry credentials by their name (`adminPass`,
//! `private_key`, `user_data` and the like) stay, with null in JSON and no text
//! in XML, so that a guest sees that there was something. A response that fails
//! here must not reach the guest in any part.

mod fields;

#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::vault::Vault;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Capture;
use wasm_cpi_policy::place::Fault;
use wasm_cpi_policy::secret::{Layer, Secret};

/// A complete response and the request it answers.
pub struct Incoming<'a> {
    pub method: &'a str,
    /// The canonical path of the request.
    pub path: &'a str,
    pub status: u16,
    pub headers: &'a mut Vec<(String, String)>,
    pub body: &'a mut Vec<u8>,
}

/// Why a response is kept from the guest. Quotes nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Withheld {
    pub reason: Reason,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It holds the secret of this name.
    Leak(String),
    /// It is compressed or the like, and could not be searched.
    Encoded,
    /// A value to be captured cannot be told apart.
    Unreadable,
}

/// Every secret costs memory to look for.
const MAX_CAPTURED: usize = 64 * 1024;

/// Makes a response fit for the guest; answers the names of what was captured.
/// `guarded`: the grant has auth or slots. `layer`: of the credentials that the
/// request was made with, and so of what they got.
pub fn screen(
    vault: &Vault,
    captures: &[Capture],
    guarded: bool,
    layer: Layer,
    response: Incoming<'_>,
) -> Result<Vec<String>, Withheld> {
    let Incoming { method, path, status, headers, body } = response;
    let withheld = |reason, why: String| Withheld {
        reason,
        message: format!("iaas: the response to {method} {path} was withheld: {why}"),
    };
    if Check::EncodedResponse.on() && (guarded || !captures.is_empty()) && !body.is_empty() && is_encoded(headers) {
        let why = "it is encoded (Content-Encoding, Transfer-Encoding), which is refused where secrets are sent; the \
                   server must answer plainly";
        return Err(withheld(Reason::Encoded, why.to_owned()));
    }

    let mut captured = Vec::new();
    let (mut too_long, mut too_many) = (false, false);
    let here = |capture: &&Capture| capture.method == method && capture.path.matches(path);
    for capture in captures.iter().filter(here).filter(|_| Check::CaptureValue.on()) {
        let replaced = capture.place.replace(headers, body, &mut |value| {
            let fresh = !value.is_empty() && vault.open(value).is_none();
            too_long |= Check::CaptureSize.on() && value.len() > MAX_CAPTURED;
            (fresh && !too_long).then(|| vault.learn(&capture.name, Secret::new(value), layer)).map(|seal| {
                too_many |= seal.is_none();
                seal.unwrap_or_default()
            })
        });
        if too_many {
            let why = format!("the call has captured all that it may, and `{}` is one value too many", capture.name);
            return Err(withheld(Reason::Unreadable, why));
        }
        if too_long {
            let why =
                format!("the value `{}` is longer than {MAX_CAPTURED} bytes, which no credential is", capture.name);
            return Err(withheld(Reason::Unreadable, why));
        }
        match replaced {
            Ok(true) => captured.push(capture.name.clone()),
            Ok(false) => {}
            // An error page is not what the capture is about.
            Err(error) if matches!(error.fault, Fault::ContentType(_)) && !(200..300).contains(&status) => {}
            Err(_) if !Check::CaptureUnreadable.on() => {}
            Err(error) => {
                let why =
                    format!("the value `{}` cannot be captured: {error}; correct the grant's capture", capture.name);
                return Err(withheld(Reason::Unreadable, why));
            }
        }
    }

    if Check::CredentialHeaders.on() {
        headers.retain(|(name, value)| !is_credential(name) || is_sealed(vault, name, value));
    }
    match fields::blank(body, guarded, &|text| vault.open(text).is_some()) {
        _ if !Check::CredentialFields.on() => {}
        Ok(None) => {}
        Ok(Some(blanked)) => *body = blanked,
        Err(fields::Unreadable) if !Check::CredentialUnreadable.on() => {}
        Err(fields::Unreadable) => {
            let why =
                "it names a field that carries credentials, and cannot be read as what it begins like (JSON, XML)";
            return Err(withheld(Reason::Unreadable, why.to_owned()));
        }
    }

    let mut parts =
        headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]).chain([body.as_slice()]);
    if let Some(name) = parts.find_map(|part| vault.leak_in(part)).filter(|_| Check::Tripwire.on()) {
        let why = format!("it holds the secret `{name}`; if that is no secret, the operator lists it under `expose`");
        return Err(withheld(Reason::Leak(name), why));
    }
    Ok(captured)
}

fn is_encoded(headers: &[(String, String)]) -> bool {
    let encodes =
        |name: &str| ["content-encoding", "transfer-encoding"].iter().any(|one| name.eq_ignore_ascii_case(one));
    let encodings = headers.iter().filter(|(name, _)| encodes(name));
    let words = encodings.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let (chunked, others): (Vec<&str>, Vec<&str>) = words.partition(|word| word.eq_ignore_ascii_case("chunked"));
    // Chunks are put together before the body comes here; chunks within chunks are not.
    chunked.len() > 1 || others.iter().any(|word| !word.is_empty() && !word.eq_ignore_ascii_case("identity"))
}

/// Headers that hand out credentials. `WWW-Authenticate` only asks for them.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "set-cookie" | "set-cookie2" | "x-subject-token" | "x-auth-token" | "authorization")
        || name.starts_with("proxy-")
        || (name.ends_with("-token") && !name.contains("csrf"))
}

/// Whether a capture put a seal there.
fn is_sealed(vault: &Vault, name: &str, value: &str) -> bool {
    let cookie = name.eq_ignore_ascii_case("set-cookie");
    let value = if cookie { value.split_once('=').map_or("", |(_, value)| value) } else { value };
    vault.open(value).is_some()
}
