//! Remembers that a response or a result of a guest held a credential, so that later calls of the
//! guest are refused until the operator has looked at it.
//!
//! Without it, a guest could search for a secret with many calls: each may end after one response that
//! held the right guess. The cache of prepared guests has one such file for each guest of a job. The
//! file is opened before the lock-down, empty until something leaks, and checked like the other files
//! there: no link is followed, and only this user or root may be able to write it.

use crate::guest_of_job::GuestOfJob;
use crate::trust::{self, DirectoryError, FileError, Untrusted, check_owner_and_mode};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use wasm_cpi_checks::Check;

/// The most bytes of the file that are read.
const MAX_BYTES: u64 = 64 * 1024;

/// The prefix of the names of the files.
const PREFIX: &str = "leaks-";

/// What follows when a response or a result holds a credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLeak {
    /// The call ends, and further calls of the guest are refused.
    #[default]
    Latch,
    /// Only the call ends.
    End,
}

/// What leaked, as the file holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedLeak {
    /// When it happened, in UTC.
    pub at: String,
    /// The method of the call.
    pub method: String,
    pub request_id: Option<String>,
    /// The name of the credential.
    pub secret: String,
    /// What held it.
    pub place: String,
}

/// Returns the name of the file of a guest.
fn file_name(guest: &GuestOfJob<'_>) -> String {
    let mut job = blake3::Hasher::new();
    job.update(guest.config.as_os_str().as_encoded_bytes());
    // No path holds this byte, and a module without a name differs from one with an empty name.
    if let Some(module) = guest.module {
        job.update(b"\0").update(module.as_bytes());
    }
    format!("{PREFIX}{}-{}", &job.finalize().to_hex()[..16], guest.guest_sha256)
}

/// The file of one guest, open and trusted.
#[derive(Debug)]
pub struct LeakLatch {
    file: File,
    path: PathBuf,
    recorded: Option<RecordedLeak>,
    method: String,
    request_id: Option<String>,
    /// The bytes that this call wrote.
    written: AtomicU64,
}

/// The reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LatchError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} {source}", path.display())]
    Directory { path: PathBuf, source: Untrusted },
    #[error("{} {source}", path.display())]
    Untrusted { path: PathBuf, source: FileError },
}

impl LatchError {
    /// Returns true if the file exists, but is not trusted.
    pub fn is_untrusted(&self) -> bool {
        match self {
            LatchError::Untrusted { .. } => true,
            // Nothing in such a directory is used, as if it were not there.
            LatchError::Directory { .. } => false,
            LatchError::Io { source, .. } => Errno::from_io_error(source) == Some(Errno::LOOP),
        }
    }
}

impl LeakLatch {
    /// Opens the file of a guest in the cache directory, and creates it if it is not there.
    pub fn open(cache: &Path, guest: &GuestOfJob<'_>) -> Result<LeakLatch, LatchError> {
        LeakLatch::open_file(cache, &file_name(guest))
    }

    /// Opens every file in the cache directory that holds a leak, whatever job it is for.
    pub fn open_recorded(cache: &Path) -> Result<Vec<LeakLatch>, LatchError> {
        let failed = |source| LatchError::Io { path: cache.to_owned(), source };
        let mut latches = Vec::new();
        for entry in std::fs::read_dir(cache).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) {
                latches.push(LeakLatch::open_file(cache, name)?);
            }
        }
        latches.retain(|latch| latch.recorded.is_some());
        Ok(latches)
    }

    fn open_file(cache: &Path, name: &str) -> Result<LeakLatch, LatchError> {
        let path = cache.join(name);
        let failed = |error: Errno| LatchError::Io { path: path.clone(), source: error.into() };
        let directory = trust::open_cache_directory(cache).map_err(|error| match error {
            DirectoryError::Io(error) => failed(error),
            DirectoryError::Untrusted(source) => LatchError::Directory { path: cache.to_owned(), source },
        })?;
        let file = File::from(open_at(&directory.descriptor, name).map_err(failed)?);
        let metadata = file.metadata().map_err(|source| LatchError::Io { path: path.clone(), source })?;
        if rustix::process::geteuid().is_root() && metadata.len() == 0 && metadata.uid() != directory.owner {
            // Root runs this for the user whose calls use the directory.
            let (user, group) =
                (rustix::fs::Uid::from_raw(directory.owner), rustix::fs::Gid::from_raw(directory.group));
            rustix::fs::fchown(&file, Some(user), Some(group)).map_err(failed)?;
        }
        let trusted = if metadata.is_file() {
            let trusted = Check::LatchTrust.perform(|| check_owner_and_mode(metadata.uid(), metadata.mode()));
            trusted.transpose().map_err(FileError::from)
        } else {
            Err(FileError::NotAFile)
        };
        trusted.map_err(|source| LatchError::Untrusted { path: path.clone(), source })?;
        let mut text = String::new();
        let read = (&file).take(MAX_BYTES).read_to_string(&mut text);
        read.map_err(|source| LatchError::Io { path: path.clone(), source })?;
        Ok(LeakLatch {
            recorded: recorded(&text),
            file,
            path,
            method: String::new(),
            request_id: None,
            written: AtomicU64::new(0),
        })
    }

    /// Returns true if the guest has a file, for commands that must not create one.
    pub fn exists(cache: &Path, guest: &GuestOfJob<'_>) -> bool {
        std::fs::symlink_metadata(cache.join(file_name(guest))).is_ok()
    }

    /// Sets the call that is recorded with a leak.
    #[must_use]
    pub fn for_call(self, method: &str, request_id: Option<&str>) -> LeakLatch {
        LeakLatch { method: method.to_owned(), request_id: request_id.map(str::to_owned), ..self }
    }

    /// Returns the leak of an earlier call.
    pub fn recorded(&self) -> Option<&RecordedLeak> {
        self.recorded.as_ref()
    }

    /// Records a leak of this call. `place` holds no secret.
    pub fn record(&self, secret: &str, place: &str) -> io::Result<()> {
        let leak = RecordedLeak {
            at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            method: self.method.clone(),
            request_id: self.request_id.clone(),
            secret: secret.to_owned(),
            place: place.to_owned(),
        };
        let line = format!("{}\n", serde_json::to_string(&leak).map_err(io::Error::other)?);
        self.written.fetch_add(line.len() as u64, Ordering::Relaxed);
        (&self.file).write_all(line.as_bytes())
    }

    /// Returns a leak of another call that was recorded since this one began. A guest with many running calls
    /// could otherwise guess once in each of them.
    pub fn recorded_meanwhile(&self) -> Option<RecordedLeak> {
        let size = rustix::fs::fstat(&self.file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        if Check::LeakLatched.accepts(size <= self.written.load(Ordering::Relaxed)) {
            return None;
        }
        let mut text = vec![0; usize::try_from(size.min(MAX_BYTES)).unwrap_or(0)];
        let read = self.file.read_at(&mut text, 0).unwrap_or(0);
        Some(recorded(&String::from_utf8_lossy(&text[..read])).unwrap_or_else(unreadable))
    }

    /// Forgets the leaks. The file stays, because calls that are running have it open.
    pub fn forget(&self) -> Result<(), LatchError> {
        self.file.set_len(0).map_err(|source| LatchError::Io { path: self.path.clone(), source })
    }
}

/// Opens the file for reading and appending, or only for reading if nothing can be written here.
fn open_at(directory: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let no_link = Check::LatchTrust.choose(OFlags::NOFOLLOW, OFlags::empty());
    // Opening must not wait for the other end of a pipe.
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK | no_link;
    let writing = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
    match rustix::fs::openat(directory, name, flags | writing, Mode::from_raw_mode(0o600)) {
        Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => {
            rustix::fs::openat(directory, name, flags | OFlags::RDONLY, Mode::empty())
        }
        opened => opened,
    }
}

/// Returns the first leak in the text. A text that cannot be read counts as a leak, too.
fn recorded(text: &str) -> Option<RecordedLeak> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(serde_json::from_str(line).unwrap_or_else(|_| unreadable()))
}

fn unreadable() -> RecordedLeak {
    RecordedLeak {
        at: "an unknown time".into(),
        method: "an unknown method".into(),
        request_id: None,
        secret: "an unknown secret".into(),
        place: "an unknown response or result".into(),
    }
}

#[cfg(test)]
mod tests;
