//! The section `guest`: which file is the module, and what it is pinned to.
//!
//! A module of a package is named by package and file, and may be pinned by a
//! file beside it; that is the only file read here, never the module itself.

use super::Packages;
use crate::component::source::is_sha256;
use crate::failure::Failure;
use crate::trust;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// In a module's package, beside the module: what it is pinned to where its job does not say.
const PIN_FILE: &str = "sha256";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuestSection {
    path: Option<PathBuf>,
    package: Option<String>,
    file: Option<String>,
    sha256: Option<String>,
    pub(super) signature: Option<Value>,
}

impl GuestSection {
    /// The module's file and its pin, which is empty where its package has it.
    pub(super) fn file(&self, base: &Path, packages: &Packages) -> Result<(PathBuf, String), Vec<String>> {
        let mut problems = Vec::new();
        let path = match (&self.path, &self.package, &self.file) {
            (Some(path), None, None) => base.join(path),
            (None, Some(package), Some(file)) => packages.file(package, file).unwrap_or_else(|problem| {
                problems.push(format!("`guest`: {problem}"));
                PathBuf::new()
            }),
            _ => {
                problems.push("`guest` must have either `path`, or `package` and `file`".to_owned());
                PathBuf::new()
            }
        };
        match &self.sha256 {
            Some(sha256) if is_sha256(sha256) => {}
            None if self.package.is_some() => {}
            _ => problems.push(
                "`guest.sha256` must be 64 lower-case hex digits; `wasm-cpi inspect GUEST.wasm` prints them".to_owned(),
            ),
        }
        if problems.is_empty() { Ok((path, self.sha256.clone().unwrap_or_default())) } else { Err(problems) }
    }
}

/// What the package says that its module is: the line of `sha256sum`, or the digest alone.
pub(super) fn pin_beside(guest: &Path) -> Result<String, Failure> {
    let file = guest.with_added_extension(PIN_FILE);
    let told = trust::read(&file, 4096)
        .map_err(|what| Failure::config(format!("`guest.sha256` is not set, and {} {what}: set it", file.display())))?;
    let digest = told.0.split_whitespace().next().unwrap_or_default();
    if !is_sha256(digest) {
        return Err(Failure::config(format!("{} holds no sha256 in lower-case hex", file.display())));
    }
    Ok(digest.to_owned())
}
