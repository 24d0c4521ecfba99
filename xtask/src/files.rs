//! Writes files so that a reader sees either the old or the new file, never a part of it,
//! and so that a running program can be replaced. Computes digests.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Replaces `to` by a copy of `from` with this mode.
pub(crate) fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    replace(to, mode, |new| fs::copy(from, new).map(drop))
        .with_context(|| format!("{} could not be copied to {}", from.display(), to.display()))
}

/// Replaces `to` by a file with this text and mode.
pub(crate) fn write(to: &Path, text: &str, mode: u32) -> Result<()> {
    replace(to, mode, |new| fs::write(new, text)).with_context(|| format!("{} could not be written", to.display()))
}

/// Creates the directory and its parents, and sets its mode even if it exists.
pub(crate) fn directory(path: &Path, mode: u32) -> Result<()> {
    let created = fs::create_dir_all(path).and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)));
    created.with_context(|| format!("the directory {} could not be created", path.display()))
}

/// Returns the SHA-256 digest in hex.
pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn replace(to: &Path, mode: u32, fill: impl FnOnce(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let mut name: OsString = to.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let fill = || {
        // Created empty and with its final mode first, so that the content is never readable by other users.
        fs::write(&new, "")?;
        fs::set_permissions(&new, Permissions::from_mode(mode | 0o200))?;
        fill(&new)?;
        fs::set_permissions(&new, Permissions::from_mode(mode))?;
        fs::rename(&new, to)
    };
    fill().inspect_err(|_| drop(fs::remove_file(&new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_gets_the_requested_mode() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        write(&file, "old", 0o600).unwrap();
        write(&file, "new", 0o640).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        copy(&file, &dir.path().join("g"), 0o755).unwrap();
        assert_eq!(fs::metadata(dir.path().join("g")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_failed_copy_names_its_source() {
        let dir = tempfile::tempdir().unwrap();
        let error = copy(&dir.path().join("absent"), &dir.path().join("to"), 0o755).unwrap_err().to_string();
        assert!(error.contains("absent"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "no temporary file is left");
    }
}
