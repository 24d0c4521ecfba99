//! Keeps the tokens of logins for later calls, so that not every call has to log in.
//!
//! Each login has a file in the cache directory. Its name is a keyed hash of everything that the token
//! depends on: the guest, the job, the login with its secrets, its certificates and the proxy. Whoever
//! changes one of them uses another file. The key is a random file that only its owner can read, because
//! a hash without a key would let anyone who sees the name test weak passwords. Files are opened before
//! the lock-down. A record is authenticated with the same key and names its file, so that a damaged,
//! half-written or exchanged record is the same as none. A file that cannot be used only costs a login.

use crate::guest_of_job::GuestOfJob;
use crate::trust::{Untrusted, check_owner_and_mode};
use blake3::Hasher;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;
use zeroize::Zeroizing;

/// The prefix of the names of the files.
const PREFIX: &str = "token-";
const KEY_FILE: &str = "tokens.key";
/// The prefix of the names of keys that are being written.
const NEW_KEY_PREFIX: &str = "tokens.key.";
const KEY_BYTES: usize = 32;

/// The most bytes of a record: a token and what the login shows, such as a catalog of services.
const MAX_RECORD: usize = 1024 * 1024;
/// The first bytes of a file: the hash of the record, then its length.
const HEADER: usize = 32 + 8;

/// A token is kept this long at most.
pub const MAX_AGE: Duration = Duration::from_secs(3600);
/// A token is not used in the last minute before it expires. The call that logs in leaves less time
/// before the end of a short lifetime (`login::expiry`), because it has no other token.
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
    /// When a server last rejected a token that was kept, in seconds since 1970.
    #[serde(rename = "refused")]
    pub last_rejection: Option<i64>,
}

impl TokenRecord {
    /// Returns the record of a token that was made now and expires after this time.
    pub fn new(token: Secret, shown: String, now: i64, lifetime: Duration, last_rejection: Option<i64>) -> TokenRecord {
        let lifetime = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
        TokenRecord { token, shown, made: now, expires: now.saturating_add(lifetime), last_rejection }
    }

    /// Returns a record without a token, which remembers when a server rejected the last one, in seconds since 1970.
    pub fn without_token(last_rejection: i64) -> TokenRecord {
        TokenRecord {
            token: Secret::new(""),
            shown: String::new(),
            made: 0,
            expires: 0,
            last_rejection: Some(last_rejection),
        }
    }

    /// Returns true if there is a token that a server may still accept, whether or not it is used.
    pub fn is_valid_at(&self, now: i64) -> bool {
        self.expires > now && !self.token.reveal().is_empty()
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

/// Returns what distinguishes the owner of tokens from others: a guest and its job.
pub fn token_owner(guest: &GuestOfJob<'_>) -> [Vec<u8>; 3] {
    let GuestOfJob { config, module, guest_sha256 } = guest;
    let module = module.map_or(String::new(), |module| format!("module {module}"));
    [config.as_os_str().as_encoded_bytes().to_vec(), module.into_bytes(), guest_sha256.as_bytes().to_vec()]
}

/// A `Secret` cannot be serialised by accident; this file is the one place where it is meant.
fn serialize_token<S: serde::Serializer>(token: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(token.reveal())
}

fn deserialize_token<'a, D: serde::Deserializer<'a>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

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

/// The reason why tokens were not deleted. The messages follow the name of the cache directory.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    #[error("tokens cannot be deleted: {0}")]
    Io(#[from] io::Error),
    #[error(
        "belongs to user {0}, so tokens in it cannot be deleted; run `wasm-cpi forget-tokens` as that user or as root"
    )]
    Owner(u32),
    #[error(transparent)]
    Untrusted(Untrusted),
    #[error("these files were not deleted: {}; delete them", .0.join(", "))]
    Remaining(Vec<String>),
}

impl From<TokenStoreError> for ForgetError {
    fn from(error: TokenStoreError) -> Self {
        match error {
            TokenStoreError::Io(error) => ForgetError::Io(error),
            TokenStoreError::Directory(Untrusted::Owner { owner, .. }) => ForgetError::Owner(owner),
            TokenStoreError::Directory(untrusted) => ForgetError::Untrusted(untrusted),
            other => ForgetError::Io(io::Error::other(other)),
        }
    }
}

impl From<Errno> for TokenStoreError {
    fn from(error: Errno) -> Self {
        TokenStoreError::Io(error.into())
    }
}

/// An open cache directory that no other user can write.
struct CacheDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
}

/// The cache directory and the key for its tokens.
pub struct TokenStore {
    directory: CacheDirectory,
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
        Ok(record.is_some_and(|record| record.usable_for(now).is_some()))
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
/// Deletes as many files as it can.
pub fn forget_tokens(cache: &Path) -> Result<usize, ForgetError> {
    let directory = match CacheDirectory::open(cache) {
        Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let count = count_trusted_tokens(cache).unwrap_or_default();
    let mut remaining = Vec::new();
    // No token can be used without the key.
    for name in [directory.names(KEY_FILE)?, directory.names(PREFIX)?].concat() {
        // A running call may still have the file open.
        if let Ok(file) = directory.open_trusted(&name, OFlags::RDWR) {
            let _ = file.set_len(0);
        }
        if let Err(error) = rustix::fs::unlinkat(&directory.descriptor, &name, AtFlags::empty()) {
            remaining.push(format!("{} ({error})", directory.path.join(&name).display()));
        }
    }
    if remaining.is_empty() { Ok(count) } else { Err(ForgetError::Remaining(remaining)) }
}

/// Returns how many tokens a cache directory keeps that can still be used. Fails if a file is not trusted.
pub fn count_tokens(cache: &Path) -> Result<usize, TokenStoreError> {
    let Some(store) = TokenStore::open_existing(cache)? else { return Ok(0) };
    let names = store.directory.names(PREFIX)?;
    names.iter().try_fold(0, |count, name| Ok(count + usize::from(store.holds_token(name)?)))
}

/// Returns how many tokens can still be used, in files that are trusted.
fn count_trusted_tokens(cache: &Path) -> Result<usize, TokenStoreError> {
    let Some(store) = TokenStore::open_existing(cache)? else { return Ok(0) };
    Ok(store.directory.names(PREFIX)?.iter().filter(|name| store.holds_token(name).unwrap_or(false)).count())
}

impl CacheDirectory {
    fn open(path: &Path) -> Result<CacheDirectory, TokenStoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&descriptor)?;
        check_owner_and_mode(stat.st_uid, stat.st_mode).map_err(TokenStoreError::Directory)?;
        Ok(CacheDirectory { path: path.to_owned(), descriptor })
    }

    /// Returns the names of the files that begin with this prefix.
    fn names(&self, prefix: &str) -> io::Result<Vec<String>> {
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
    fn open_trusted(&self, name: &str, access: OFlags) -> Result<File, TokenStoreError> {
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

/// Returns the key, or `None` if there is none.
fn read_key(directory: &CacheDirectory) -> Result<Option<Zeroizing<[u8; KEY_BYTES]>>, TokenStoreError> {
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
fn create_key(directory: &CacheDirectory) -> Result<(), TokenStoreError> {
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

#[cfg(test)]
mod tests;
