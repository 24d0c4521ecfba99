//! The key of a cache directory: a random file that only its owner can read.

use super::TokenStoreError;
use super::directory::CacheDirectory;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use zeroize::Zeroizing;

pub(super) const KEY_FILE: &str = "tokens.key";
/// The prefix of the names of keys that are being written.
pub(super) const NEW_KEY_PREFIX: &str = "tokens.key.";
pub(super) const KEY_BYTES: usize = 32;

pub(super) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// Returns the key, or `None` if there is none.
pub(super) fn read_key(directory: &CacheDirectory) -> Result<Option<Key>, TokenStoreError> {
    let file = match directory.open_trusted(KEY_FILE, OFlags::RDONLY) {
        Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    match file.read_exact_at(key.as_mut(), 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(TokenStoreError::Damaged(directory.path.join(KEY_FILE)))
        }
        read => Ok(read.map(|()| Some(key))?),
    }
}

/// Creates the key under another name first, so that no process reads half of it. The file never has two
/// names, because a key with two names is not trusted.
pub(super) fn create_key(directory: &CacheDirectory) -> Result<(), TokenStoreError> {
    let descriptor = &directory.descriptor;
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(io::Error::other)?;
    let new = format!("{NEW_KEY_PREFIX}{:016x}", u64::from_le_bytes(suffix));
    let renamed = write_new_key(directory, &new)
        .and_then(|()| Ok(rustix::fs::renameat_with(descriptor, &new, descriptor, KEY_FILE, RenameFlags::NOREPLACE)?));
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(&directory.descriptor, &new, AtFlags::empty());
    }
    match renamed {
        // Another process was faster, and its key counts.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        renamed => Ok(renamed?),
    }
}

fn write_new_key(directory: &CacheDirectory, name: &str) -> io::Result<()> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(key.as_mut()).map_err(io::Error::other)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::openat(&directory.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all_at(key.as_ref(), 0)?;
    // A power failure must not leave an empty key, as that would stay.
    file.sync_all()
}
