//! The presets that a policy names, read from beside it or from packages.

use crate::component::source::Stamp;
use crate::config::{self, Packages};
use crate::policy::{PolicyFile, Problem};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

pub struct Presets<'a> {
    policy: &'a Path,
    packages: &'a Packages,
    /// What was read, as it was before.
    read: RefCell<Vec<(PathBuf, Stamp)>>,
    warnings: RefCell<Vec<String>>,
}

impl<'a> Presets<'a> {
    pub fn beside(policy: &'a Path, packages: &'a Packages) -> Self {
        Presets { policy, packages, read: RefCell::default(), warnings: RefCell::default() }
    }

    /// The policy that has this text, with the presets that it names.
    pub fn parse(&self, text: &str) -> Result<PolicyFile, Vec<Problem>> {
        self.read.borrow_mut().clear();
        PolicyFile::parse_with(text, &|package, name| self.read(package, name))
    }

    pub(super) fn read(&self, package: Option<&str>, name: &str) -> Result<String, String> {
        let file = match package {
            None => self.policy.parent().unwrap_or(Path::new("")).join(name),
            Some(package) => self.packages.file(package, name)?,
        };
        let (text, warnings, stamp) = config::read_stamped(&file).map_err(|failure| failure.message)?;
        self.warnings.borrow_mut().extend(warnings);
        self.read.borrow_mut().push((file, stamp));
        Ok(text)
    }

    /// All that was read, in that order.
    pub(super) fn stamps(&self) -> Vec<(PathBuf, Stamp)> {
        self.read.borrow().clone()
    }

    /// What people should know about the files.
    pub fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }
}
