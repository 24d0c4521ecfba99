//! Basic auth. Credentials are compared in constant time.

use super::files;
use crate::failure::Failure;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use std::path::Path;
use zeroize::Zeroizing;

/// Holds only the digest of `user:password`. Comparing digests takes the same time for any input.
pub(super) struct Credentials(blake3::Hash);

impl Credentials {
    pub(super) fn new(user: &str, password_file: &Path) -> Result<Self, Failure> {
        let text = Zeroizing::new(files::read_private(password_file, "password file")?);
        let password = text.strip_suffix('\n').unwrap_or(&text);
        let password = password.strip_suffix('\r').unwrap_or(password);
        if password.is_empty() || password.contains(char::is_control) {
            let path = password_file.display();
            return Err(Failure::config(format!(
                "registry: password file `{path}` must hold one line, the password, without control characters"
            )));
        }
        if user.is_empty() || user.contains(':') || user.contains(char::is_control) {
            return Err(Failure::config(
                "registry: the user name must not be empty and must not contain a colon or control characters",
            ));
        }
        let pair = Zeroizing::new(format!("{user}:{password}"));
        Ok(Credentials(blake3::hash(pair.as_bytes())))
    }

    /// Returns true if the request has exactly one `Authorization` header with the right credentials.
    pub(super) fn allow(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, encoded)) = value.to_str().ok().and_then(|value| value.split_once(' ')) else { return false };
        let Ok(pair) = BASE64_STANDARD.decode(encoded.trim()) else { return false };
        scheme.eq_ignore_ascii_case("basic") && blake3::hash(&Zeroizing::new(pair)) == self.0
    }
}
