//! The key `hardening` of the config: how much hardening the operator demands.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hardening {
    /// A call fails if a mechanism is not available.
    Required,
    /// A call uses the mechanisms that this machine supports.
    #[default]
    BestEffort,
    /// No mechanism is used.
    Off,
}

impl fmt::Display for Hardening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hardening::Required => "required",
            Hardening::BestEffort => "best-effort",
            Hardening::Off => "off",
        })
    }
}

/// Parses the level that is passed to the compiling child.
impl FromStr for Hardening {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Hardening::Required, Hardening::BestEffort, Hardening::Off];
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
        for (text, level) in
            [("required", Hardening::Required), ("best-effort", Hardening::BestEffort), ("off", Hardening::Off)]
        {
            assert_eq!(serde_json::from_value::<Hardening>(text.into()).unwrap(), level);
            assert_eq!((text.parse(), level.to_string().as_str()), (Ok(level), text));
        }
        assert_eq!(Hardening::default(), Hardening::BestEffort);
        for wrong in ["Required", "best_effort", "", "on"] {
            assert!(serde_json::from_value::<Hardening>(wrong.into()).is_err() && wrong.parse::<Hardening>().is_err());
        }
    }
}
