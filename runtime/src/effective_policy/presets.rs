//! Reads the presets that a policy names, from its own directory or from packages.

use crate::config::{self, Packages};
use std::cell::RefCell;
use std::path::Path;
use wasm_cpi_policy::{PolicyFile, Problem};

pub struct Presets<'a> {
    policy: &'a Path,
    packages: &'a Packages,
    warnings: RefCell<Vec<String>>,
}

impl<'a> Presets<'a> {
    pub fn beside(policy: &'a Path, packages: &'a Packages) -> Self {
        Presets { policy, packages, warnings: RefCell::default() }
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
        let (text, warnings) = config::read(&file).map_err(|failure| failure.message)?;
        self.warnings.borrow_mut().extend(warnings);
        Ok(text)
    }

    /// Returns the warnings about the files that were read.
    pub fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }
}
