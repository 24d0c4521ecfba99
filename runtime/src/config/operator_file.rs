//! Reads the files of the operator, which only the operator or root may be able to write.

use super::installation;
use crate::failure::Failure;
use crate::trust::{self, FileError, Untrusted};
use std::path::Path;

/// The largest config, policy or preset.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a file of the operator: a config, a policy or a preset. Rejects a file that someone other
/// than this user or root can write. Returns its text, and warnings about the file.
pub fn read(path: &Path) -> Result<(String, Vec<String>), Failure> {
    let failed = |error: FileError| {
        let text = match &error {
            FileError::Untrusted(Untrusted::Writable(mode)) if installation::is_installed_by_cli(path) => format!(
                "is writable by group or others (mode {:o}), because the CLI wrote it with this user's umask; run \
                 `umask 022`, and then the same `bosh` command again, which writes the file again",
                mode & 0o777
            ),
            error => error.to_string(),
        };
        let failure = Failure::config(format!("{}: {text}", path.display()));
        Failure { check: error.check(), ..failure }
    };
    let (text, mode) = trust::read(path, MAX_BYTES).map_err(failed)?;
    let mut warnings = Vec::new();
    if mode & 0o004 != 0 {
        warnings
            .push(format!("{} is readable by every user; run `chmod o-r` on it if it holds secrets", path.display()));
    }
    Ok((text, warnings))
}
