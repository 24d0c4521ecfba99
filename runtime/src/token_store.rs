//! Keeps the tokens of logins for later calls, so that not every call has to log in.
//!
//! Each login has a file in the cache directory. Its name is a keyed hash of everything that the token
//! depends on: the guest, the job, the login with its secrets, its certificates and the proxy. A
//! change of one of them leads to another file. The key is a random file that only its owner can read, because
//! a hash without a key would let anyone who sees the name test weak passwords. Files are opened before
//! the lock-down. A record is authenticated with the same key and names its file, so that a damaged,
//! half-written or exchanged record is the same as none. A file that cannot be used only costs a login.

mod directory;
mod file;
mod forget;
mod key;
mod record;

#[cfg(test)]
mod tests;

pub use file::{TokenFile, TokenLock};
pub use forget::{count_tokens, forget_tokens};
pub use record::{MARGIN, TokenRecord};

use record::MAX_AGE;

use crate::guest_of_job::GuestOfJob;
use crate::trust::Untrusted;
use blake3::Hasher;
use directory::CacheDirectory;
use key::{Key, NEW_KEY_PREFIX, create_key, read_key};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// The prefix of the names of the files.
const PREFIX: &str = "token-";

/// The reason why tokens cannot be kept here. The messages are for operators.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    #[error("tokens are not kept: {0}")]
    Io(#[from] io::Error),
    #[error("tokens are not kept: the cache directory {0}")]
    Directory(#[source] Untrusted),
    #[error(
        "tokens are not kept: {} belongs to another user, can be read by others, is a link or has several names; \
         delete it",
        .0.display()
    )]
    Untrusted(PathBuf),
    #[error("tokens are not kept: {} is damaged; run `wasm-cpi forget-tokens`", .0.display())]
    Damaged(PathBuf),
}

impl From<Errno> for TokenStoreError {
    fn from(error: Errno) -> Self {
        TokenStoreError::Io(error.into())
    }
}

/// The cache directory and the key for its tokens.
pub struct TokenStore {
    directory: CacheDirectory,
    key: Key,
}

impl TokenStore {
    /// Opens the store in a cache directory. Returns `None` if there is no directory or no key, without which no
    /// file can be read.
    fn open_existing(cache: &Path) -> Result<Option<TokenStore>, TokenStoreError> {
        let directory = match CacheDirectory::open(cache) {
            Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let key = read_key(&directory)?;
        Ok(key.map(|key| TokenStore { directory, key }))
    }

    /// Opens the store in a cache directory, and creates its key if there is none.
    pub fn open(cache: &Path) -> Result<TokenStore, TokenStoreError> {
        let directory = CacheDirectory::open(cache)?;
        let key = match read_key(&directory)? {
            Some(key) => key,
            None => {
                create_key(&directory)?;
                read_key(&directory)?.ok_or(io::ErrorKind::NotFound).map_err(io::Error::from)?
            }
        };
        Ok(TokenStore { directory, key })
    }

    /// Returns true if the file holds a token that can still be used. Fails if the file is not trusted.
    fn holds_token(&self, name: &str) -> Result<bool, TokenStoreError> {
        let file = self.directory.open_trusted(name, OFlags::RDONLY)?;
        let record = TokenFile { file, name: name.to_owned(), key: self.key.clone() }.read();
        let now = jiff::Timestamp::now().as_second();
        Ok(record.is_some_and(|record| record.usable_for(now, MARGIN).is_some()))
    }

    /// Opens the file for a token that depends on these values, and creates it if there is none.
    pub fn file(&self, depends_on: &[&[u8]]) -> Result<TokenFile, TokenStoreError> {
        let mut hash = Hasher::new_keyed(&self.key);
        for value in depends_on {
            hash.update(&(value.len() as u64).to_le_bytes()).update(value);
        }
        let name = format!("{PREFIX}{}", hash.finalize().to_hex());
        let file = match self.directory.open_trusted(&name, OFlags::RDWR) {
            Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                remove_old(&self.directory);
                self.directory.open_trusted(&name, OFlags::RDWR | OFlags::CREATE)?
            }
            opened => opened?,
        };
        Ok(TokenFile { file, name, key: self.key.clone() })
    }
}

/// Returns what distinguishes the owner of tokens from others: a guest and its job.
pub fn token_owner(guest: &GuestOfJob<'_>) -> [Vec<u8>; 3] {
    let GuestOfJob { config, module, guest_sha256 } = guest;
    let module = module.map_or(String::new(), |module| format!("module {module}"));
    [config.as_os_str().as_encoded_bytes().to_vec(), module.into_bytes(), guest_sha256.as_bytes().to_vec()]
}

/// Removes files whose tokens have expired long ago, for example those of an old password, and keys that a
/// killed process left half-written.
fn remove_old(directory: &CacheDirectory) {
    let now = jiff::Timestamp::now().as_second();
    let oldest = now.saturating_sub_unsigned(24 * MAX_AGE.as_secs());
    let all = [PREFIX, NEW_KEY_PREFIX].map(|prefix| directory.names(prefix).unwrap_or_default());
    for name in all.concat() {
        let old = rustix::fs::statat(&directory.descriptor, &name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| stat.st_mtime < oldest);
        if old {
            let _ = rustix::fs::unlinkat(&directory.descriptor, &name, AtFlags::empty());
        }
    }
}
