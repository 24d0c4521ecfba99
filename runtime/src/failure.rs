//! One failed call: who failed, what, and what to do about it.
//!
//! Every layer ends in a `Failure`; `rpc::response` alone turns it into the
//! wire's error types. The message is one sentence for people and comes first;
//! details (backtraces, lists) go into `detail` and from there into the
//! response's `log`.

use std::fmt;

/// Who is to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The caller sent something that cannot be right.
    Request,
    /// The operator's files.
    Config,
    /// The operator's policy said no.
    Policy,
    /// A limit of the configuration.
    Limit,
    /// The guest's code.
    Guest,
    /// The cloud, or the way to it.
    Iaas,
    /// This program.
    Runtime,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::Request => "request",
            Who::Config => "config",
            Who::Policy => "policy",
            Who::Limit => "limit",
            Who::Guest => "guest",
            Who::Iaas => "iaas",
            Who::Runtime => "runtime",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{who}: {message}")]
pub struct Failure {
    pub who: Who,
    /// What failed and what to do, without the `who`.
    pub message: String,
    /// More lines for the log.
    pub detail: String,
}

impl Failure {
    pub fn new(who: Who, message: impl Into<String>) -> Self {
        Failure { who, message: message.into(), detail: String::new() }
    }

    pub fn request(message: impl Into<String>) -> Self {
        Failure::new(Who::Request, message)
    }

    pub fn config(message: impl Into<String>) -> Self {
        Failure::new(Who::Config, message)
    }

    /// A limit was reached: `name` is its key under `limits` in the config.
    pub fn limit(name: &str, value: impl fmt::Display, what: impl fmt::Display) -> Self {
        Failure::new(
            Who::Limit,
            format!(
                "{what} reached `{name}` ({value}); if that is legitimate, raise `limits.{name}` in the CPI's config"
            ),
        )
    }

    pub fn guest(message: impl Into<String>) -> Self {
        Failure::new(Who::Guest, message)
    }

    pub fn runtime(message: impl Into<String>) -> Self {
        Failure::new(Who::Runtime, message)
    }

    /// A panic of this program, whose text is not repeated: it may quote secrets.
    pub fn bug() -> Self {
        Failure::runtime("a bug in wasm-cpi ended the call; please report it")
    }

    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}
