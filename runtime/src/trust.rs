//! Accepts only files that no one except this user or root can write.
//!
//! Links are followed. The open file is judged, so that it cannot be replaced after the check.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use wasm_cpi_checks::Check;

/// The reason why a file is not trusted. The message follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    #[error("belongs to user {owner}, neither to this user ({me}) nor to root; run `chown` on it")]
    Owner { owner: u32, me: u32 },
    #[error("is writable by group or others (mode {:o}); run `chmod go-w` on it", .0 & 0o777)]
    Writable(u32),
}

/// The reason why a file of the operator cannot be used. The message follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    #[error("is not a regular file; use the path of a regular file")]
    NotAFile,
    #[error("cannot be read ({0}); check the path and that this user may read it")]
    NotOpened(#[source] io::Error),
    #[error("cannot be read ({0})")]
    Unreadable(#[source] io::Error),
    #[error("is not UTF-8 text; save it as UTF-8")]
    NotText,
    #[error("is larger than {}; make it smaller", size(*.0))]
    TooLarge(u64),
}

impl FileError {
    /// Returns the check that refuses a file of the operator, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        matches!(self, FileError::Untrusted(_)).then_some(Check::TrustedFile)
    }
}

/// Rejects an owner other than this user or root, and a mode that lets group or others write.
pub fn check_owner_and_mode(owner: u32, mode: u32) -> Result<(), Untrusted> {
    let me = rustix::process::geteuid().as_raw();
    if owner != me && owner != 0 {
        return Err(Untrusted::Owner { owner, me });
    }
    if mode & 0o022 != 0 {
        return Err(Untrusted::Writable(mode));
    }
    Ok(())
}

/// An open directory that no one except this user or root can write.
pub struct TrustedDirectory {
    pub descriptor: OwnedFd,
    pub owner: u32,
    pub group: u32,
}

/// The reason why a cache directory cannot be used.
pub enum DirectoryError {
    Io(Errno),
    Untrusted(Untrusted),
}

/// Opens a cache directory. Follows no link, and rejects a directory that other users can write.
pub fn open_cache_directory(path: &Path) -> Result<TrustedDirectory, DirectoryError> {
    let no_link = Check::CacheDirectoryLink.choose(OFlags::NOFOLLOW, OFlags::empty());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | no_link;
    let descriptor = rustix::fs::open(path, flags, Mode::empty()).map_err(DirectoryError::Io)?;
    let stat = rustix::fs::fstat(&descriptor).map_err(DirectoryError::Io)?;
    let trusted = Check::CacheDirectory.perform(|| check_owner_and_mode(stat.st_uid, stat.st_mode));
    trusted.transpose().map_err(DirectoryError::Untrusted)?;
    Ok(TrustedDirectory { descriptor, owner: stat.st_uid, group: stat.st_gid })
}

/// Checks an open file of the operator, and returns its mode.
pub fn check_file(metadata: &Metadata) -> Result<u32, FileError> {
    if !metadata.is_file() {
        return Err(FileError::NotAFile);
    }
    Check::TrustedFile.perform(|| check_owner_and_mode(metadata.uid(), metadata.mode())).transpose()?;
    Ok(metadata.mode())
}

/// Returns the capacity for reading a file at once. It is a little larger than the file, so that
/// the end is found without growing the buffer.
pub fn read_capacity(metadata: &Metadata, max_bytes: u64) -> usize {
    usize::try_from(metadata.len().min(max_bytes)).map_or(0, |bytes| bytes + 64)
}

/// Returns the text of a file of the operator, and the file's mode.
pub fn read(path: &Path, max_bytes: u64) -> Result<(String, u32), FileError> {
    // Opening must not wait for the other end of a pipe.
    let opened = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(FileError::NotOpened)?;
    let metadata = opened.metadata().map_err(FileError::Unreadable)?;
    let mode = check_file(&metadata)?;
    let mut bytes = Vec::with_capacity(read_capacity(&metadata, max_bytes));
    opened.take(max_bytes + 1).read_to_end(&mut bytes).map_err(FileError::Unreadable)?;
    if bytes.len() as u64 > max_bytes {
        return Err(FileError::TooLarge(max_bytes));
    }
    let text = String::from_utf8(bytes).map_err(|_| FileError::NotText)?;
    Ok((text, mode))
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_text_or_too_large_is_not_an_untrusted_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"\xff\xfe").unwrap();
        let error = read(&path, 100).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.check()), ("is not UTF-8 text; save it as UTF-8", None));
        assert!(matches!(read(&path, 1), Err(FileError::TooLarge(1))));
        assert!(matches!(read(dir.path(), 100), Err(FileError::NotAFile)));
    }
}
