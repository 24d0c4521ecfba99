//! Rejects a URL by its text, before the WHATWG parser reads and repairs it, and by the name of its host.

use super::{InvalidUrl, Scheme};
use wasm_cpi_checks::Check;

/// Returns the scheme. Rejects every URL that the WHATWG parser would silently repair.
pub(super) fn check_shape(text: &str) -> Result<Scheme, InvalidUrl> {
    const NO_AUTHORITY: InvalidUrl =
        InvalidUrl::Form { what: "is not of the form `https://host[:port]/path`", check: Some(Check::UrlSlashes) };

    let (scheme, rest) = text.split_once(':').ok_or(NO_AUTHORITY)?;
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !well_formed {
        return Err(NO_AUTHORITY);
    }
    let scheme = scheme.to_ascii_lowercase();
    let known = match scheme.as_str() {
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        _ => None,
    };
    Check::UrlScheme.ensure(known.is_some(), || InvalidUrl::Scheme(scheme.chars().take(32).collect()))?;
    let after_slashes = rest.strip_prefix("//");
    Check::UrlSlashes.ensure(after_slashes.is_some(), || NO_AUTHORITY)?;
    let rest = after_slashes.unwrap_or(rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Check::UrlUserinfo.ensure(!authority.contains('@'), || {
        InvalidUrl::form("holds a user name or password; the policy's `auth` sends credentials")
    })?;
    Check::UrlPercentHost.ensure(!authority.contains('%'), || {
        InvalidUrl::form("has a percent-encoded host or a zone id; write the plain host")
    })?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, after) = v6.split_once(']').ok_or(NO_AUTHORITY)?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(NO_AUTHORITY),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    Check::UrlSlashes.ensure(!host.is_empty(), || NO_AUTHORITY)?;
    if let Some(port) = port {
        let digits = !port.starts_with('0') && port.chars().all(|c| c.is_ascii_digit());
        Check::UrlPort.ensure(digits && port.parse::<u16>().is_ok(), || {
            InvalidUrl::form("has a port that is not a number from 1 to 65535")
        })?;
    }
    Ok(known.unwrap_or(Scheme::Https))
}

/// Rejects names whose length or characters DNS does not allow. Names with empty labels pass:
/// no grant matches them, and the denial is the better message for the guest.
pub(super) fn check_name(name: &str) -> Result<(), InvalidUrl> {
    Check::UrlNameLength.ensure(name.strip_suffix('.').unwrap_or(name).len() <= 253, || {
        InvalidUrl::form("has a host name of more than 253 characters")
    })?;
    for label in name.split('.') {
        Check::UrlNameLength.ensure(label.len() <= 63, || {
            InvalidUrl::form("has a host name with a label of more than 63 characters")
        })?;
        let plain = label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        Check::UrlNameCharacters.ensure(plain && !label.starts_with('-') && !label.ends_with('-'), || {
            InvalidUrl::form("has a host name with characters that DNS names do not have")
        })?;
    }
    Ok(())
}
