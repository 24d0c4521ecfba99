//! A value that must not be seen: no `Display`, no `Serialize`, a `Debug` that
//! says nothing, wiped when dropped.

use std::fmt;
use zeroize::Zeroizing;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

/// Where a value was configured. A secret travels only to origins of its own
/// layer, so that a cpi-config cannot have the job's credentials sent elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The job's `config/cpi.json`.
    Job,
    /// The request's context: a cpi-config of the Director.
    Context,
    /// Made or received during this call: agent settings, tokens, captures.
    Call,
}

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Secret(Zeroizing::new(value.into()))
    }

    /// The value itself, for the few places that send it: name them in review.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Secret {
    /// The password within it, if it is a URL with one: what is used of such a
    /// secret, and so may come out alone.
    pub fn password_in_url(&self) -> Option<Secret> {
        // Most secrets are none, and need not be parsed.
        let url = Some(self.reveal()).filter(|text| text.contains("://") && text.contains('@'))?;
        let url = url::Url::parse(url).ok()?;
        let password = url.password().filter(|password| !password.is_empty())?;
        let pair = Zeroizing::new(format!("p={}", password.replace('+', "%2B")));
        let decoded = url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned());
        decoded.map(Secret::new)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_url_is_found_and_decoded() {
        for (text, password) in [
            ("nats://u:p%40+s@h:4222", Some("p@+s")),
            ("https://:x@h/y?z", Some("x")),
            ("https://u@h", None),
            ("https://u:@h", None),
            ("https://h/a:b@c", None),
            ("a:b@c", None),
            ("", None),
        ] {
            assert_eq!(Secret::new(text).password_in_url(), password.map(Secret::new), "{text}");
        }
    }

    #[test]
    fn debug_does_not_show_the_value() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(<redacted>)");
    }
}
