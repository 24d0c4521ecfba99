//! The switch of mutation tests: turns one check off.

use super::Check;
use std::sync::OnceLock;

/// The environment variable that names the check to turn off.
pub const VARIABLE: &str = "WASM_CPI_HOLE";

impl Check {
    /// Returns false for the one check that is turned off.
    pub fn on(self) -> bool {
        static OFF: OnceLock<Option<Check>> = OnceLock::new();
        let named = |(_, name, ..): &&(Check, &str, &str, &str)| kebab(name) == switched_off();
        *OFF.get_or_init(|| Check::ALL.iter().find(named).map(|(check, ..)| *check)) != Some(self)
    }
}

/// Returns the name that the environment gives: of a check, of a limit, or empty.
pub fn switched_off() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| std::env::var(VARIABLE).unwrap_or_default())
}

/// Returns one line for each check: its name, its area and what it refuses, separated by tabs.
pub fn list() -> String {
    Check::ALL.iter().map(|(_, name, area, what)| format!("{}\t{area}\t{what}\n", kebab(name))).collect()
}

fn kebab(name: &str) -> String {
    name.chars().fold(String::new(), |mut kebab, c| {
        if c.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
        kebab
    })
}
