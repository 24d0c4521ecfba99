//! Whose files count: those that nobody but this user or root can have written.
//! Links are followed; what they lead to is judged, on the open descriptor.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use wasm_cpi_checks::Check;

/// Why a file does not count; follows the file's name in a sentence.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    #[error("belongs to user {owner}, neither to this user ({me}) nor to root; run `chown` on it")]
    Owner { owner: u32, me: u32 },
    #[error("is writable by group or others (mode {:o}); run `chmod go-w` on it", .0 & 0o777)]
    Writable(u32),
    #[error("is not a regular file")]
    NotAFile,
    #[error("cannot be read ({0}); check the path and that this user may read it")]
    Unopened(#[source] io::Error),
    #[error("cannot be read ({0})")]
    Unreadable(#[source] io::Error),
    #[error("is larger than {}", size(*.0))]
    TooLarge(u64),
}

/// Whether only this user or root can have written it.
pub fn trusted(owner: u32, mode: u32) -> Result<(), Untrusted> {
    let me = rustix::process::geteuid().as_raw();
    if owner != me && owner != 0 {
        return Err(Untrusted::Owner { owner, me });
    }
    if mode & 0o022 != 0 {
        return Err(Untrusted::Writable(mode));
    }
    Ok(())
}

/// The mode of an open file that decides about trust, if it may.
pub fn file(metadata: &Metadata) -> Result<u32, Untrusted> {
    if !metadata.is_file() {
        return Err(Untrusted::NotAFile);
    }
    if Check::TrustedFile.on() {
        trusted(metadata.uid(), metadata.mode())?;
    }
    Ok(metadata.mode())
}

/// What is read in one go fits with a little to spare, by which its end is seen.
pub fn room(metadata: &Metadata, max_bytes: u64) -> usize {
    usize::try_from(metadata.len().min(max_bytes)).map_or(0, |bytes| bytes + 64)
}

/// Returns the text of a file that decides about trust, and the file's mode.
pub fn read(path: &Path, max_bytes: u64) -> Result<(String, u32), Untrusted> {
    // What is no file (a pipe, say) is not waited for.
    let opened = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(Untrusted::Unopened)?;
    let metadata = opened.metadata().map_err(Untrusted::Unreadable)?;
    let mode = file(&metadata)?;
    let mut text = String::with_capacity(room(&metadata, max_bytes));
    opened.take(max_bytes + 1).read_to_string(&mut text).map_err(Untrusted::Unreadable)?;
    if text.len() as u64 > max_bytes {
        return Err(Untrusted::TooLarge(max_bytes));
    }
    Ok((text, mode))
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}
