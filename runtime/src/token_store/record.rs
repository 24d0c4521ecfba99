//! The record of a token, and how long the token is used.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use wasm_cpi_policy::secret::Secret;

/// A token is kept this long at most.
pub const MAX_AGE: Duration = Duration::from_secs(3600);
/// The token of a login is not used in the last minute before it expires. The call that logs in leaves less time
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
    /// Tokens that were replaced before they expired. They are not sent any more, and no response may show them.
    #[serde(default)]
    pub earlier: Vec<EarlierToken>,
}

/// A token that was replaced, and that a server may still accept.
#[derive(Clone, Serialize, Deserialize)]
pub struct EarlierToken {
    #[serde(serialize_with = "serialize_token", deserialize_with = "deserialize_token")]
    pub token: Secret,
    /// When it expires, in seconds since 1970.
    pub expires: i64,
}

/// The most earlier tokens that are remembered. A server that issues more is not trusted with more memory.
const MAX_EARLIER: usize = 8;

impl TokenRecord {
    /// Returns the record of a token that was made now and expires after this time.
    pub fn new(token: Secret, shown: String, now: i64, lifetime: Duration, last_rejection: Option<i64>) -> TokenRecord {
        let lifetime = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
        let expires = now.saturating_add(lifetime);
        TokenRecord { token, shown, made: now, expires, last_rejection, earlier: Vec::new() }
    }

    /// Returns a record without a token, which remembers when a server rejected the last one, in seconds since 1970.
    pub fn without_token(last_rejection: i64) -> TokenRecord {
        TokenRecord {
            token: Secret::new(""),
            shown: String::new(),
            made: 0,
            expires: 0,
            last_rejection: Some(last_rejection),
            earlier: Vec::new(),
        }
    }

    /// Returns the record that replaces `last`, whose tokens it remembers until they expire.
    pub fn after(self, last: Option<&TokenRecord>, now: i64) -> TokenRecord {
        let earlier = last.map(|last| last.valid_tokens(now)).unwrap_or_default();
        let others = earlier.into_iter().filter(|earlier| earlier.token != self.token).take(MAX_EARLIER);
        TokenRecord { earlier: others.collect(), ..self }
    }

    /// Returns all tokens that a server may still accept, whether or not they are used, the newest first.
    pub fn valid_tokens(&self, now: i64) -> Vec<EarlierToken> {
        let current = EarlierToken { token: self.token.clone(), expires: self.expires };
        let all = std::iter::once(current).chain(self.earlier.iter().cloned());
        all.filter(|one| one.expires > now && !one.token.reveal().is_empty()).collect()
    }

    /// Returns how long the token can still be used, if it is not used for `margin` before it expires.
    pub fn usable_for(&self, now: i64, margin: Duration) -> Option<Duration> {
        let margin = i64::try_from(margin.as_secs()).unwrap_or(i64::MAX);
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
