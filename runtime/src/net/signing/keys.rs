//! The keys that sign requests.

use crate::vault::{SecretKind, Vault};
use serde_json::{Value, json};
use wasm_cpi_policy::secret::Secret;

/// The longest key or token that is accepted. Servers accept no longer headers.
const MAX_PART: usize = 16 * 1024;

/// A pair of keys, and the token of a session if they are temporary. `Debug` shows nothing of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::net) struct Keys {
    pub access_key_id: Secret,
    pub secret_access_key: Secret,
    pub session_token: Option<Secret>,
}

/// The reason why keys of a server cannot be used. The messages follow "the keys".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::net) enum KeysError {
    #[error("are not complete")]
    Incomplete,
    #[error("have characters that no header can hold, or are too long")]
    Form,
}

impl Keys {
    /// Returns temporary keys that a server returned. Rejects what cannot be sent.
    pub(in crate::net) fn from_server(id: &str, secret: &str, token: &str) -> Result<Keys, KeysError> {
        let parts = [id, secret, token];
        if parts.iter().any(|part| part.is_empty()) {
            return Err(KeysError::Incomplete);
        }
        let fits = |part: &&str| part.len() <= MAX_PART && part.bytes().all(|byte| byte.is_ascii_graphic());
        if !parts.iter().all(fits) {
            return Err(KeysError::Form);
        }
        let (access_key_id, secret_access_key) = (Secret::new(id), Secret::new(secret));
        Ok(Keys { access_key_id, secret_access_key, session_token: Some(Secret::new(token)) })
    }

    /// Returns the keys as one text, in which they are kept like the token of a login.
    pub(in crate::net) fn to_token(&self) -> Secret {
        let token = self.session_token.as_ref().map(Secret::reveal);
        let keys = json!({
            "access_key_id": self.access_key_id.reveal(),
            "secret_access_key": self.secret_access_key.reveal(),
            "session_token": token,
        });
        Secret::new(keys.to_string())
    }

    /// Returns the keys of such a text.
    pub(in crate::net) fn from_token(token: &Secret) -> Option<Keys> {
        let keys: Value = serde_json::from_str(token.reveal()).ok()?;
        let part = |name: &str| keys.get(name)?.as_str();
        Keys::from_server(part("access_key_id")?, part("secret_access_key")?, part("session_token")?).ok()
    }

    /// Makes the keys known, for redaction and the tripwire.
    pub(in crate::net) fn register(&self, vault: &Vault, credentials: &str) {
        let parts = [
            ("access key ID", Some(&self.access_key_id)),
            ("secret access key", Some(&self.secret_access_key)),
            ("session token", self.session_token.as_ref()),
        ];
        for (what, part) in parts {
            if let Some(part) = part {
                vault.register_as(SecretKind::Token, &format!("{what} of credentials {credentials}"), part.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_as_one_text_and_show_nothing() {
        let keys = Keys::from_server("AKID", "se/cret+", "tok\"en=").unwrap();
        assert_eq!(Keys::from_token(&keys.to_token()), Some(keys.clone()));
        assert!(!format!("{keys:?}").contains("se/cret"));
        for broken in ["", "{}", "[]", r#"{"access_key_id": "a", "secret_access_key": "b"}"#] {
            assert_eq!(Keys::from_token(&Secret::new(broken)), None, "{broken}");
        }
    }

    #[test]
    fn keys_that_cannot_be_sent_are_rejected() {
        for (id, secret, token, error) in [
            ("", "s", "t", KeysError::Incomplete),
            ("i", "s", "", KeysError::Incomplete),
            ("i", "s\r\nx: y", "t", KeysError::Form),
            ("i", "s", " t", KeysError::Form),
            ("i\u{e4}", "s", "t", KeysError::Form),
        ] {
            assert_eq!(Keys::from_server(id, secret, token), Err(error), "{id} {secret} {token}");
        }
    }
}
