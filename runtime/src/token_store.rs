//! Keeps the tokens of logins for later calls, so that not every call has to log in.
//!
//! Each login has a file in the cache directory. Its name is a keyed hash of everything that the token
//! depends on: the guest, the job, the login with its secrets, its certificates and the proxy. Whoever
//! changes one of them uses another file. The key is a random file that only its owner can read, because
//! a hash without a key would let anyone who sees the name test weak passwords. Files are opened before
//! the lock-down. A record is authenticated with the same key and names its file, so that a damaged,
//! half-written or exchanged record is the same as none. A file that cannot be used only costs a login.

use crate::trust::{Untrusted, check_owner_and_mode};
use blake3::Hasher;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;
use zeroize::Zeroizing;

/// How the names of the files begin.
const PREFIX: &str = "token-";
const KEY_FILE: &str = "tokens.key";
/// How the names of keys begin that are being written.
const NEW_KEY_PREFIX: &str = "tokens.key.";
const KEY_BYTES: usize = 32;

/// The most bytes of a record: a token and what the login shows, such as a catalog of services.
const MAX_RECORD: usize = 1024 * 1024;
/// The first bytes of a file: the hash of the record, then its length.
const HEADER: usize = 32 + 8;

/// A token is kept this long at most.
pub const MAX_AGE: Duration = Duration::from_secs(3600);
/// A token is not used any more so long before it expires.
pub const MARGIN: Duration = Duration::from_secs(60);

/// What is kept of a login. The guest sees `shown` only.
#[derive(Serialize, Deserialize)]
pub struct TokenRecord {
    #[serde(serialize_with = "serialize_token", deserialize_with = "deserialize_token")]
    pub token: Secret,
    /// The part of the login's response that the guest may see, a JSON object.
    pub shown: String,
    /// When the token was made and when it expires, in seconds since 1970.
    pub made: i64,
    pub expires: i64,
    /// When a server last refused a token that was kept, in seconds since 1970.
    pub refused: Option<i64>,
}

impl TokenRecord {
    /// Returns the record of a token that was made now and expires after this time.
    pub fn new(token: Secret, shown: String, now: i64, lifetime: Duration, refused: Option<i64>) -> TokenRecord {
        let lifetime = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
        TokenRecord { token, shown, made: now, expires: now.saturating_add(lifetime), refused }
    }

    /// Returns a record without a token, which remembers when a server refused the last one.
    pub fn without_token(refused: i64) -> TokenRecord {
        TokenRecord { token: Secret::new(""), shown: String::new(), made: 0, expires: 0, refused: Some(refused) }
    }

    /// Returns how long the token can still be used.
    pub fn usable_for(&self, now: i64) -> Option<Duration> {
        let margin = i64::try_from(MARGIN.as_secs()).unwrap_or(i64::MAX);
        let oldest = i64::try_from(MAX_AGE.as_secs()).unwrap_or(i64::MAX);
        // A clock that was set back would keep a token for too long.
        if self.made > now {
            return None;
        }
        let end = self.expires.saturating_sub(margin).min(self.made.saturating_add(oldest));
        u64::try_from(end.saturating_sub(now)).ok().filter(|left| *left > 0).map(Duration::from_secs)
    }
}

/// A `Secret` cannot be serialised by accident; this file is the one place where it is meant.
fn serialize_token<S: serde::Serializer>(token: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(token.reveal())
}

fn deserialize_token<'a, D: serde::Deserializer<'a>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// Why tokens cannot be kept here. The messages are for operators.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    #[error("tokens are not kept: {0}")]
    Io(#[from] io::Error),
    #[error("tokens are not kept: the cache directory {0}")]
    Directory(#[source] Untrusted),
    #[error(
        "tokens are not kept: {0} belongs to another user, can be read by others, is a link or has several names; delete it"
    )]
    Untrusted(String),
    #[error("tokens are not kept: {0} is damaged; run `wasm-cpi forget-tokens`")]
    Damaged(&'static str),
}

impl From<Errno> for TokenStoreError {
    fn from(error: Errno) -> Self {
        TokenStoreError::Io(error.into())
    }
}

/// The cache directory and the key for its tokens.
pub struct TokenStore {
    directory: OwnedFd,
    key: Zeroizing<[u8; KEY_BYTES]>,
}

/// The file of one login.
pub struct TokenFile {
    file: File,
    name: String,
    key: Zeroizing<[u8; KEY_BYTES]>,
}

/// Holds the lock of a file until it is dropped.
pub struct TokenLock<'a>(&'a TokenFile);

impl Drop for TokenLock<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(self.0.file.as_fd(), FlockOperation::Unlock);
    }
}

impl TokenStore {
    /// Opens the store in a cache directory, and creates its key if there is none.
    pub fn open(cache: &Path) -> Result<TokenStore, TokenStoreError> {
        let directory = open_directory(cache)?;
        let key = match read_key(&directory)? {
            Some(key) => key,
            None => {
                create_key(&directory)?;
                read_key(&directory)?.ok_or(io::ErrorKind::NotFound).map_err(io::Error::from)?
            }
        };
        Ok(TokenStore { directory, key })
    }

    /// Returns how many tokens are kept that can still be used. Fails if a file is not trusted.
    fn count(&self) -> Result<usize, TokenStoreError> {
        let now = jiff::Timestamp::now().as_second();
        let mut count = 0;
        for name in names(&self.directory, PREFIX)? {
            let file = open_trusted(&self.directory, &name, OFlags::RDONLY)?;
            let record = TokenFile { file, name, key: self.key.clone() }.read();
            count += usize::from(record.is_some_and(|record| record.usable_for(now).is_some()));
        }
        Ok(count)
    }

    /// Opens the file for a token that depends on these values, and creates it if there is none.
    pub fn file(&self, depends_on: &[&[u8]]) -> Result<TokenFile, TokenStoreError> {
        let mut hash = Hasher::new_keyed(&self.key);
        for value in depends_on {
            hash.update(&(value.len() as u64).to_le_bytes()).update(value);
        }
        let name = format!("{PREFIX}{}", hash.finalize().to_hex());
        let file = match open_trusted(&self.directory, &name, OFlags::RDWR) {
            Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                remove_old(&self.directory);
                open_trusted(&self.directory, &name, OFlags::RDWR | OFlags::CREATE)?
            }
            opened => opened?,
        };
        Ok(TokenFile { file, name, key: self.key.clone() })
    }
}

impl TokenFile {
    /// Returns the record, unless there is none or it is damaged.
    pub fn read(&self) -> Option<TokenRecord> {
        let mut header = [0; HEADER];
        self.file.read_exact_at(&mut header, 0).ok()?;
        let (hash, length) = header.split_first_chunk::<32>()?;
        let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
        if length == 0 || length > MAX_RECORD {
            return None;
        }
        let mut text = Zeroizing::new(vec![0; length]);
        self.file.read_exact_at(&mut text, HEADER as u64).ok()?;
        let genuine = self.hash(&text) == *hash;
        Check::TokenRecord.accepts(genuine).then(|| serde_json::from_slice(&text).ok())?
    }

    /// Replaces the record and overwrites all bytes of the last one. The caller holds the lock.
    pub fn write(&self, record: &TokenRecord) -> io::Result<()> {
        let text = Zeroizing::new(serde_json::to_vec(record).map_err(io::Error::other)?);
        if text.len() > MAX_RECORD {
            return Err(io::Error::other("the login's response is too large to keep"));
        }
        // The lock-down does not let a call shorten the file.
        let before = usize::try_from(rustix::fs::fstat(&self.file)?.st_size).unwrap_or_default();
        let length = (HEADER + text.len()).max(before.min(HEADER + MAX_RECORD));
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.extend_from_slice(self.hash(&text).as_bytes());
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&text);
        bytes.resize(length, 0);
        self.file.write_all_at(&bytes, 0)
    }

    /// Returns the lock, or `None` if another call has it.
    pub fn try_lock(&self) -> io::Result<Option<TokenLock<'_>>> {
        match rustix::fs::flock(self.file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(TokenLock(self))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn hash(&self, text: &[u8]) -> blake3::Hash {
        let mut hash = Hasher::new_keyed(&self.key);
        hash.update(self.name.as_bytes()).update(b"\0").update(text);
        hash.finalize()
    }
}

/// Deletes all tokens and the key of a cache directory, and returns how many tokens could still be used.
pub fn forget_tokens(cache: &Path) -> Result<usize, TokenStoreError> {
    let directory = match open_directory(cache) {
        Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    // Files that are not trusted are deleted as well.
    let count = count_tokens(cache).unwrap_or_default();
    for name in names(&directory, PREFIX)? {
        // A running call may still have the file open.
        if let Ok(file) = open_trusted(&directory, &name, OFlags::RDWR) {
            file.set_len(0)?;
        }
        rustix::fs::unlinkat(&directory, &name, AtFlags::empty())?;
    }
    for name in names(&directory, KEY_FILE)? {
        rustix::fs::unlinkat(&directory, &name, AtFlags::empty())?;
    }
    Ok(count)
}

/// Returns how many tokens a cache directory keeps that can still be used.
pub fn count_tokens(cache: &Path) -> Result<usize, TokenStoreError> {
    let directory = match open_directory(cache) {
        Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    // Without a key, no file can be read.
    read_key(&directory)?.map_or(Ok(0), |key| TokenStore { directory, key }.count())
}

/// Returns the names in a directory that begin with this prefix.
fn names(directory: &OwnedFd, prefix: &str) -> Result<Vec<String>, TokenStoreError> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            names.push(name);
        }
    }
    Ok(names)
}

fn open_directory(cache: &Path) -> Result<OwnedFd, TokenStoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let directory = rustix::fs::open(cache, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&directory)?;
    check_owner_and_mode(stat.st_uid, stat.st_mode).map_err(TokenStoreError::Directory)?;
    Ok(directory)
}

/// Opens a file that only this user can read and write, without following a link.
fn open_trusted(directory: &OwnedFd, name: &str, access: OFlags) -> Result<File, TokenStoreError> {
    let no_link = Check::TokenTrust.choose(OFlags::NOFOLLOW, OFlags::empty());
    // Opening must not wait for the other end of a pipe.
    let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK | no_link;
    let file = match rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::LOOP | Errno::ISDIR) => return Err(TokenStoreError::Untrusted(name.to_owned())),
        Err(Errno::ACCESS) if !access.contains(OFlags::CREATE) => {
            return Err(TokenStoreError::Untrusted(name.to_owned()));
        }
        opened => File::from(opened?),
    };
    let metadata = file.metadata()?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    let private = metadata.mode() & 0o077 == 0 && metadata.nlink() == 1;
    if !metadata.is_file() || Check::TokenTrust.refuses(!own || !private) {
        return Err(TokenStoreError::Untrusted(name.to_owned()));
    }
    Ok(file)
}

/// Returns the key, or `None` if there is none.
fn read_key(directory: &OwnedFd) -> Result<Option<Zeroizing<[u8; KEY_BYTES]>>, TokenStoreError> {
    let file = match open_trusted(directory, KEY_FILE, OFlags::RDONLY) {
        Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    match file.read_exact_at(key.as_mut(), 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(TokenStoreError::Damaged(KEY_FILE)),
        read => Ok(read.map(|()| Some(key))?),
    }
}

/// Creates the key under another name first, so that no process reads half of it. The file never has two
/// names, because a key with two names is not trusted.
fn create_key(directory: &OwnedFd) -> Result<(), TokenStoreError> {
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(io::Error::other)?;
    let new = format!("{NEW_KEY_PREFIX}{:016x}", u64::from_le_bytes(suffix));
    let renamed = write_new_key(directory, &new)
        .and_then(|()| Ok(rustix::fs::renameat_with(directory, &new, directory, KEY_FILE, RenameFlags::NOREPLACE)?));
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(directory, &new, AtFlags::empty());
    }
    match renamed {
        // Another process was faster, and its key counts.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        renamed => Ok(renamed?),
    }
}

fn write_new_key(directory: &OwnedFd, name: &str) -> io::Result<()> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(key.as_mut()).map_err(io::Error::other)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all_at(key.as_ref(), 0)?;
    // A power failure must not leave an empty key, as that would stay.
    file.sync_all()
}

/// Removes files whose tokens have expired long ago, for example those of an old password, and keys that a
/// killed process left half-written.
fn remove_old(directory: &OwnedFd) {
    let now = jiff::Timestamp::now().as_second();
    let oldest = now.saturating_sub_unsigned(24 * MAX_AGE.as_secs());
    let all = [PREFIX, NEW_KEY_PREFIX].map(|prefix| names(directory, prefix).unwrap_or_default());
    for name in all.concat() {
        let old =
            rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| stat.st_mtime < oldest);
        if old {
            let _ = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
