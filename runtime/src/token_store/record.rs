//! The record of a token, and how long the token is used.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use wasm_cpi_policy::secret::Secret;

/// A token is kept this long at most.
pub const MAX_AGE: Duration = Duration::from_secs(3600);
/// A token is not used in the last minute before it expires. The call that logs in leaves less time
/// before the end of a short lifetime (`login::expiry`), because it has no other token.
pub const MARGIN: Duration = Duration::from_secs(60);

/// What is kept of a login. The guest sees `shown` only.
#[derive(Serialize, Deserialize)]
pub struct TokenRecord {
    #[serde(serialize_with = "serialize_token", deserialize_with = "deserialize_token")]
    pub token: Secret,
    /// The part of the login's response that the guest may see, a JSON object.
    pub shown: String,
    /// When the token was made and when it expires, in seconds since 1970.
    pub made: i64,
    pub expires: i64,
    /// When a server last rejected a token that was kept, in seconds since 1970.
    #[serde(rename = "refused")]
    pub last_rejection: Option<i64>,
}

impl TokenRecord {
    /// Returns the record of a token that was made now and expires after this time.
    pub fn new(token: Secret, shown: String, now: i64, lifetime: Duration, last_rejection: Option<i64>) -> TokenRecord {
        let lifetime = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
        TokenRecord { token, shown, made: now, expires: now.saturating_add(lifetime), last_rejection }
    }

    /// Returns a record without a token, which remembers when a server rejected the last one, in seconds since 1970.
    pub fn without_token(last_rejection: i64) -> TokenRecord {
        TokenRecord {
            token: Secret::new(""),
            shown: String::new(),
            made: 0,
            expires: 0,
            last_rejection: Some(last_rejection),
        }
    }

    /// Returns true if there is a token that a server may still accept, whether or not it is used.
    pub fn is_valid_at(&self, now: i64) -> bool {
        self.expires > now && !self.token.reveal().is_empty()
    }

    /// Returns how long the token can still be used.
    pub fn usable_for(&self, now: i64) -> Option<Duration> {
        let margin = i64::try_from(MARGIN.as_secs()).unwrap_or(i64::MAX);
        let oldest = i64::try_from(MAX_AGE.as_secs()).unwrap_or(i64::MAX);
        // A clock that was set back would keep a token for too long.
        if self.made > now {
            return None;
        }
        let end = self.expires.saturating_sub(margin).min(self.made.saturating_add(oldest));
        u64::try_from(end.saturating_sub(now)).ok().filter(|left| *left > 0).map(Duration::from_secs)
    }
}

/// A `Secret` cannot be serialised by accident; this file is the one place where it is meant.
fn serialize_token<S: serde::Serializer>(token: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(token.reveal())
}

fn deserialize_token<'a, D: serde::Deserializer<'a>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}
