//! Reads the presets that a policy names, from its own directory or from packages.

use crate::config::{self, Packages};
use serde_json::Value;
use std::path::Path;
use wasm_cpi_policy::{PolicyFile, PolicyProblem};

/// Reads a policy with the presets that it names.
pub struct PolicyReader<'a> {
    policy: &'a Path,
    packages: &'a Packages,
}

impl<'a> PolicyReader<'a> {
    /// Returns the reader of the policy at this path. Presets without a package are beside it.
    pub fn new(policy: &'a Path, packages: &'a Packages) -> Self {
        PolicyReader { policy, packages }
    }

    /// Parses the text of a policy, with the presets that it names.
    pub fn parse_policy(&self, text: &str) -> Result<PolicyFile, Vec<PolicyProblem>> {
        PolicyFile::parse_with(text, &|package, name| self.read(package, name))
    }

    fn read(&self, package: Option<&str>, name: &str) -> Result<String, String> {
        let file = match package {
            None => self.policy.parent().unwrap_or(Path::new("")).join(name),
            Some(package) => self.packages.file(package, name)?,
        };
        // A preset comes from a guest's author and holds no secrets, so every user may read it.
        config::operator_file::read(&file).map(|(text, _)| text).map_err(|failure| failure.message)
    }
}

/// Returns a sentence about the presets in the directory of a guest's file, or nothing if there are
/// none. Their names begin with that of the guest.
pub fn presets_of_guest(guest: &Path) -> Option<String> {
    let stem = guest.file_stem()?.to_str()?;
    let directory = guest.parent()?;
    let is_preset = |name: &String| {
        let text = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        let grants = serde_json::from_str::<Value>(&text).is_ok_and(|value| value["http"].is_array());
        name.starts_with(stem) && name.ends_with(".json") && grants
    };
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(is_preset);
    names.sort();
    let (first, names) = (names.first()?.clone(), names.join(", "));
    let line = format!("\"presets\": [{{\"file\": \"{first}\"}}]");
    Some(format!(
        "the guest comes with presets ({names}), which grant its needs; use them like {line} instead of single grants"
    ))
}
