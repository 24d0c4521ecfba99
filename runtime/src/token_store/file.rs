//! The file of one login: an authenticated record, and a lock.

use super::key::Key;
use super::record::TokenRecord;
use blake3::Hasher;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use wasm_cpi_checks::Check;
use zeroize::Zeroizing;

/// The most bytes of a record: a token and what the login shows, such as a catalog of services.
pub(super) const MAX_RECORD: usize = 1024 * 1024;
/// The first bytes of a file: the hash of the record, then its length.
const HEADER: usize = 32 + 8;

/// The file of one login.
pub struct TokenFile {
    pub(super) file: File,
    pub(super) name: String,
    pub(super) key: Key,
}

/// Holds the lock of a file until it is dropped.
pub struct TokenLock<'a>(&'a TokenFile);

impl Drop for TokenLock<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(self.0.file.as_fd(), FlockOperation::Unlock);
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

    pub(super) fn hash(&self, text: &[u8]) -> blake3::Hash {
        let mut hash = Hasher::new_keyed(&self.key);
        hash.update(self.name.as_bytes()).update(b"\0").update(text);
        hash.finalize()
    }
}
