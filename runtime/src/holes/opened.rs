//! The one check that is off, in builds for tests of the tests.

use super::Check;
use crate::limits::{self, Limits};
use std::sync::OnceLock;

/// Names the check to turn off.
const OPEN: &str = "WASM_CPI_HOLE";

impl Check {
    pub fn on(self) -> bool {
        static OFF: OnceLock<Option<Check>> = OnceLock::new();
        *OFF.get_or_init(|| Check::ALL.iter().find(|(_, name, ..)| kebab(name) == wanted()).map(|(check, ..)| *check))
            != Some(self)
    }
}

/// With the one that is off larger than any config can make it.
pub fn lifted(mut limits: Limits) -> Limits {
    limits.lift(wanted().strip_prefix("limit-").unwrap_or_default());
    limits
}

pub fn for_child() -> Option<(&'static str, &'static str)> {
    Some((OPEN, wanted()))
}

/// Name, area and what is refused, a line each.
pub fn list() -> String {
    let checks = Check::ALL.iter().map(|(_, name, area, what)| format!("{}\t{area}\t{what}\n", kebab(name)));
    let limits = limits::NAMES.iter().map(|(name, _)| format!("limit-{name}\tlimits\tmore than `{name}` allows\n"));
    checks.chain(limits).collect()
}

#[expect(clippy::disallowed_methods, reason = "no setting: no build that ships has it")]
fn wanted() -> &'static str {
    static WANTED: OnceLock<String> = OnceLock::new();
    WANTED.get_or_init(|| std::env::var(OPEN).unwrap_or_default())
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
