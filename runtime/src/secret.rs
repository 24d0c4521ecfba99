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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_value() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(<redacted>)");
    }
}
