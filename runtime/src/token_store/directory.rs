//! The cache directory, and the trust in its files.

use super::TokenStoreError;
use crate::trust::{self, DirectoryError};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;

/// An open cache directory that no other user can write.
pub(super) struct CacheDirectory {
    pub path: PathBuf,
    pub descriptor: OwnedFd,
}

impl CacheDirectory {
    pub(super) fn open(path: &Path) -> Result<CacheDirectory, TokenStoreError> {
        let directory = trust::open_cache_directory(path).map_err(|error| match error {
            DirectoryError::Io(error) => TokenStoreError::Io(error.into()),
            DirectoryError::Untrusted(untrusted) => TokenStoreError::Directory(untrusted),
        })?;
        Ok(CacheDirectory { path: path.to_owned(), descriptor: directory.descriptor })
    }

    /// Returns the names of the files that begin with this prefix.
    pub(super) fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Opens a file that only this user can read and write, without following a link.
    pub(super) fn open_trusted(&self, name: &str, access: OFlags) -> Result<File, TokenStoreError> {
        let untrusted = || TokenStoreError::Untrusted(self.path.join(name));
        let no_link = Check::TokenTrust.choose(OFlags::NOFOLLOW, OFlags::empty());
        // Opening must not wait for the other end of a pipe.
        let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK | no_link;
        let file = match rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::LOOP | Errno::ISDIR) => return Err(untrusted()),
            Err(Errno::ACCESS) if !access.contains(OFlags::CREATE) => return Err(untrusted()),
            opened => File::from(opened?),
        };
        let metadata = file.metadata()?;
        let own = metadata.uid() == rustix::process::geteuid().as_raw();
        let private = metadata.mode() & 0o077 == 0 && metadata.nlink() == 1;
        if !metadata.is_file() || Check::TokenTrust.refuses(!own || !private) {
            return Err(untrusted());
        }
        Ok(file)
    }
}
