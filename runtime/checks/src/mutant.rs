//! Turns one check off, for mutation tests.
//!
//! A mutant is a program in which one check, or one limit of the configuration, is off. A test
//! that still passes with it does not test the check.

use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::{Check, Explanation};

/// The environment variable that names the check or limit to turn off.
pub const VARIABLE: &str = "WASM_CPI_MUTANT";

impl Check {
    /// Returns true if this is the check that is turned off.
    pub fn is_off(self) -> bool {
        static OFF: OnceLock<Option<Check>> = OnceLock::new();
        *OFF.get_or_init(|| Check::find(mutant())) == Some(self)
    }
}

/// Returns the value of the environment variable: the name of a check or of a limit, or nothing.
pub fn mutant() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| std::env::var(VARIABLE).unwrap_or_default())
}

/// Returns one line for each check: its name, its area and what it is for, separated by tabs.
pub fn list() -> String {
    Check::ALL.iter().fold(String::new(), |mut list, check| {
        let (Explanation::Refusal { meaning: text, .. } | Explanation::Safeguard { purpose: text }) =
            check.explanation();
        let _ = writeln!(list, "{check}\t{}\t{text}", check.area());
        list
    })
}
