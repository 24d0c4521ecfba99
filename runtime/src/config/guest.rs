//! The section `guest`: the file of the guest, and its pin.
//!
//! A guest of a package is named by package and file, and a file beside it may hold its pin.
//! Only that file is read here, never the guest itself.

use super::Packages;
use crate::component::digest::is_hex_digest;
use crate::failure::Problem;
use crate::trust;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The extension of the file beside a guest that holds its pin, for a config without a pin.
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
    /// Returns the guest's file and its pin, which is absent if the package holds it.
    pub(super) fn file(&self, base: &Path, packages: &Packages) -> Result<(PathBuf, Option<String>), Vec<Problem>> {
        let mut problems = Vec::new();
        let path = match (&self.path, &self.package, &self.file) {
            (Some(path), None, None) => base.join(path),
            (None, Some(package), Some(file)) => packages.file(package, file).unwrap_or_else(|problem| {
                problems.push(Problem::new(format!("`guest`: {problem}")));
                PathBuf::new()
            }),
            _ => {
                problems.push(Problem::new("`guest` must have either `path`, or `package` and `file`"));
                PathBuf::new()
            }
        };
        match &self.sha256 {
            Some(sha256) if is_hex_digest(sha256) => {}
            None if self.package.is_some() => {}
            _ => problems.push(Problem::new(
                "`guest.sha256` must be 64 lower-case hex digits; `wasm-cpi inspect GUEST.wasm` prints them",
            )),
        }
        if problems.is_empty() { Ok((path, self.sha256.clone())) } else { Err(problems) }
    }
}

/// Reads the pin from the package: a line of `sha256sum`, or only the digest.
pub(super) fn pin_beside(guest: &Path) -> Result<String, Problem> {
    let file = guest.with_added_extension(PIN_FILE);
    let (text, _) = trust::read(&file, 4096).map_err(|error| Problem {
        text: format!("`guest.sha256` is not set, and {} {error}; set `guest.sha256`", file.display()),
        check: error.check(),
    })?;
    let digest = text.split_whitespace().next().unwrap_or_default();
    if !is_hex_digest(digest) {
        return Err(Problem::new(format!(
            "{} does not hold a sha256 of 64 lower-case hex digits; install the package again, or set `guest.sha256`",
            file.display()
        )));
    }
    Ok(digest.to_owned())
}

/// Returns the warning about a guest whose pin is in its package.
pub(super) fn pinned_by_package(guest: &Path) -> String {
    format!(
        "guest {} is pinned by its own package; set `guest.sha256`, so that a new version runs only after you changed it",
        guest.display()
    )
}
