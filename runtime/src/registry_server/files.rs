//! The server's files. A file that holds secrets is used only if other users cannot access it.

use crate::failure::Failure;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const MAX_BYTES: u64 = 256 * 1024;

/// Reads a password or key. The file's group may read it, because BOSH renders such files for a
/// group.
pub(super) fn read_private(path: &Path, what: &str) -> Result<String, Failure> {
    let failed = |why: String| Failure::config(format!("registry: {what} `{}` {why}", path.display()));
    let unreadable = |error: std::io::Error| {
        failed(format!("cannot be read: {error}; check the path and that this user may read it"))
    };
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(failed("is not a regular file; use the path of a regular file".into()));
    }
    if metadata.mode() & 0o027 != 0 {
        return Err(failed(format!(
            "holds a secret, but other users can access it (mode {}); run `chmod o-rwx,g-w` on it",
            mode(&metadata)
        )));
    }
    read_text(file).map_err(unreadable)
}

/// Reads a file that other users may read.
pub(super) fn read_public(path: &Path, what: &str) -> Result<String, Failure> {
    let text = File::open(path).and_then(read_text);
    text.map_err(|error| {
        Failure::config(format!("registry: {what} `{}` cannot be read: {error}; check the path", path.display()))
    })
}

/// Creates the database file, or checks an existing one: it must belong to this user, and no other
/// user may access it. Links are not followed.
pub(super) fn create_store_file(path: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::config(format!("registry: store `{}` {why}", path.display()));
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| {
            failed(format!("cannot be opened: {error}; its directory must exist, and links are not followed"))
        })?;
    let metadata = file.metadata().map_err(|error| failed(format!("cannot be opened: {error}")))?;
    if !metadata.is_file() {
        return Err(failed("is not a regular file; use the path of a regular file".into()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed("belongs to another user; run the registry as that user".into()));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(failed(format!(
            "holds secrets, but other users can access it (mode {}); run `chmod 600` on it",
            mode(&metadata)
        )));
    }
    Ok(())
}

fn read_text(file: File) -> std::io::Result<String> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn mode(metadata: &Metadata) -> String {
    format!("{:03o}", metadata.mode() & 0o777)
}
