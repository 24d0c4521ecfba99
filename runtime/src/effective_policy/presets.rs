//! Reads the presets that a policy names, from its own directory or from packages.

use crate::config::{self, Packages};
use std::path::Path;
use wasm_cpi_policy::{PolicyFile, Problem};

pub struct Presets<'a> {
    policy: &'a Path,
    packages: &'a Packages,
}

impl<'a> Presets<'a> {
    pub fn beside(policy: &'a Path, packages: &'a Packages) -> Self {
        Presets { policy, packages }
    }

    /// Parses the text of a policy, with the presets that it names.
    pub fn parse(&self, text: &str) -> Result<PolicyFile, Vec<Problem>> {
        PolicyFile::parse_with(text, &|package, name| self.read(package, name))
    }

    fn read(&self, package: Option<&str>, name: &str) -> Result<String, String> {
        let file = match package {
            None => self.policy.parent().unwrap_or(Path::new("")).join(name),
            Some(package) => self.packages.file(package, name)?,
        };
        // A preset comes from a guest's author and holds no secrets, so every user may read it.
        config::read(&file).map(|(text, _)| text).map_err(|failure| failure.message)
    }
}
