//! The key `hardening` of the config: how much hardening the operator demands.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockDownLevel {
    /// A call fails if a mechanism is not available.
    Required,
    /// A call uses the mechanisms that this machine supports.
    #[default]
    BestEffort,
    /// No mechanism is used.
    Off,
}

impl fmt::Display for LockDownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockDownLevel::Required => "required",
            LockDownLevel::BestEffort => "best-effort",
            LockDownLevel::Off => "off",
        })
    }
}

/// Parses the level that is passed to the compiling child.
impl FromStr for LockDownLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [LockDownLevel::Required, LockDownLevel::BestEffort, LockDownLevel::Off];
        all.into_iter()
            .find(|level| level.to_string() == text)
            .ok_or_else(|| format!("`{text}` is not a hardening level; use required, best-effort or off"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_parses_as_it_prints() {
        for (text, level) in [
            ("required", LockDownLevel::Required),
            ("best-effort", LockDownLevel::BestEffort),
            ("off", LockDownLevel::Off),
        ] {
            assert_eq!(serde_json::from_value::<LockDownLevel>(text.into()).unwrap(), level);
            assert_eq!((text.parse(), level.to_string().as_str()), (Ok(level), text));
        }
        assert_eq!(LockDownLevel::default(), LockDownLevel::BestEffort);
        for wrong in ["Required", "best_effort", "", "on"] {
            assert!(
                serde_json::from_value::<LockDownLevel>(wrong.into()).is_err()
                    && wrong.parse::<LockDownLevel>().is_err()
            );
        }
    }
}
