//! Secret values, and the layer of the configuration that they come from.

use std::fmt;
use zeroize::Zeroizing;

/// A text that must not be logged. It has no `Display` and no `Serialize`, its `Debug` shows
/// `<redacted>`, and its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

/// The part of the configuration that a value comes from. A secret of the job is never sent to
/// an origin that a cpi-config chose; the other direction is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The value is from the job's `config/cpi.json`, or written into the policy.
    Job,
    /// The value is from the request's context, that is from a cpi-config of the Director.
    Context,
    /// The value was created in this call: agent settings, and settings that the registry
    /// returned. It may go to every origin.
    Call,
}

impl Layer {
    /// Returns true if a secret of this layer may be sent to an origin. Origins of the job may get secrets of the
    /// context, but origins of the context must not get secrets of the job.
    ///
    /// ```
    /// use wasm_cpi_policy::secret::Layer;
    ///
    /// assert!(Layer::Context.may_be_sent_to(Layer::Job) && Layer::Call.may_be_sent_to(Layer::Context));
    /// assert!(!Layer::Job.may_be_sent_to(Layer::Context));
    /// ```
    #[must_use]
    pub fn may_be_sent_to(self, origin: Layer) -> bool {
        match self {
            Layer::Job => origin == Layer::Job,
            Layer::Context => origin != Layer::Call,
            Layer::Call => true,
        }
    }
}

impl Secret {
    /// Takes over a text as a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(Zeroizing::new(value.into()))
    }

    /// Returns the text itself. Only code that sends or compares the secret may call this.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the decoded password if the secret is a URL with one, or the user if there is no password:
    /// it is a token then, as in `nats://TOKEN@host`, except for SSH, which has its password elsewhere. A
    /// server may echo it without the rest of the URL, so it has to be redacted on its own.
    pub fn credential_in_url(&self) -> Option<Secret> {
        // Most secrets are not URLs and need not be parsed.
        let url = Some(self.reveal()).filter(|text| text.contains("://") && text.contains('@'))?;
        let url = url::Url::parse(url).ok()?;
        let token = || Some(url.username()).filter(|user| !user.is_empty() && !url.scheme().contains("ssh"));
        let credential = url.password().filter(|password| !password.is_empty()).or_else(token)?;
        let pair = Zeroizing::new(format!("p={}", credential.replace('+', "%2B")));
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
    fn the_password_or_token_of_a_url_is_found_and_decoded() {
        for (text, credential) in [
            ("nats://u:p%40+s@h:4222", Some("p@+s")),
            ("https://:x@h/y?z", Some("x")),
            ("nats://t%40ken@h:4222", Some("t@ken")),
            ("https://u:@h", Some("u")),
            ("ssh://git@h", None),
            ("git+ssh://git@h", None),
            ("https://h/a:b@c", None),
            ("a:b@c", None),
            ("", None),
        ] {
            assert_eq!(Secret::new(text).credential_in_url(), credential.map(Secret::new), "{text}");
        }
    }

    #[test]
    fn debug_does_not_show_the_value() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(<redacted>)");
    }
}
