//! Files that hold secrets: read only if nobody else can.

use crate::failure::Failure;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const MAX_BYTES: u64 = 256 * 1024;

/// A password or key. Its group may read it, as BOSH renders such files for one.
pub(super) fn read_private(path: &Path, what: &str) -> Result<String, Failure> {
    let failed = |why: String| Failure::config(format!("registry: {what} `{}` {why}", path.display()));
    let unreadable = |error: std::io::Error| failed(format!("cannot be read: {error}"));
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(failed("is no regular file".into()));
    }
    if metadata.mode() & 0o027 != 0 {
        return Err(failed(format!("has mode {}; run `chmod o-rwx,g-w` on it", mode(&metadata))));
    }
    read_text(file).map_err(unreadable)
}

/// What need not be private.
pub(super) fn read_public(path: &Path, what: &str) -> Result<String, Failure> {
    let text = File::open(path).and_then(read_text);
    text.map_err(|error| Failure::config(format!("registry: {what} `{}` cannot be read: {error}", path.display())))
}

/// Makes the database file, or checks the one that is there: ours, and closed
/// to everybody else. A link is not followed.
pub(super) fn make_store(path: &Path) -> Result<(), Failure> {
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
        return Err(failed("is no regular file".into()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed("belongs to another user; run the registry as that user".into()));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(failed(format!("has mode {} and holds secrets; run `chmod 600` on it", mode(&metadata))));
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
