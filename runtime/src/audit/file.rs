//! The file of the lines: opened once, before the guest's code runs; every line
//! appended with one write, so that lines of many processes never mix.
//!
//! Whoever else can write to its directory must not be able to have us write
//! elsewhere: links are not followed, and a file that is not ours is not used.
//! Nothing here waits for a lock; only a last line without its end is looked at
//! again for some milliseconds, once, when the file is opened.

use crate::config::AuditConfig;
use crate::trust::{Untrusted, trusted};
use rustix::fs::{Access, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wasm_cpi_checks::Check;

/// Files that were put aside and are kept: `<path>.1` is the newest.
pub(super) const GENERATIONS: u32 = 4;

/// How often a file that does not end with a line's end is looked at again:
/// somebody may be in the middle of writing.
const LOOKS: u32 = 5;

/// Why a file is not written to.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuditFileError {
    #[error("{} is a symbolic link, which is not followed", .0.display())]
    Link(PathBuf),
    #[error("{} cannot be {what} ({source})", path.display())]
    Unavailable { path: PathBuf, what: &'static str, source: Errno },
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("{} {source}", path.display())]
    Untrusted { path: PathBuf, source: Untrusted },
    /// It cannot be put aside.
    #[error(transparent)]
    Rename(#[from] Errno),
}

pub(super) struct LogFile {
    file: OwnedFd,
    /// The last line in it has no end: a disk had no room for the rest.
    torn: AtomicBool,
}

impl LogFile {
    /// Puts the file aside first if it is full. Also says what did not work but
    /// keeps no line from being written.
    pub(super) fn open(config: &AuditConfig) -> Result<(LogFile, Option<String>), AuditFileError> {
        let (mut file, stat) = checked(&config.path)?;
        let mut trouble = None;
        if config.max_bytes.is_some_and(|max| size(&stat) >= max) {
            match put_aside(&config.path, config.max_bytes.unwrap_or(u64::MAX)) {
                Ok(new) => file = new.unwrap_or(file),
                Err(error) => trouble = Some(format!("it is full and cannot be put aside: {error}")),
            }
        }
        let torn = AtomicBool::new(is_torn(&file));
        Ok((LogFile { file: write_only(&file).unwrap_or(file), torn }, trouble))
    }

    /// One line, its end included.
    pub(super) fn append(&self, line: &[u8]) -> io::Result<()> {
        let after_torn;
        let bytes = if self.torn.load(Ordering::Relaxed) {
            after_torn = [b"\n", line].concat();
            &after_torn
        } else {
            line
        };
        let written = loop {
            match rustix::io::write(&self.file, bytes) {
                Err(Errno::INTR) => {}
                written => break written,
            }
        };
        match written {
            Ok(count) if count == bytes.len() => {
                self.torn.store(false, Ordering::Relaxed);
                Ok(())
            }
            // The rest would land behind another process's line.
            Ok(count) => {
                if count > 0 {
                    self.torn.store(true, Ordering::Relaxed);
                }
                Err(io::Error::new(io::ErrorKind::StorageFull, "there is no room for a whole line"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the file was put aside so often meanwhile that it is kept no more.
    pub(super) fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

/// The same file, from which nothing can be read or mapped, at its end: what other
/// calls wrote so far is safe from whatever becomes of this process, which cannot
/// seek once it is locked down.
fn write_only(file: &OwnedFd) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    rustix::fs::seek(&file, SeekFrom::End(0)).ok()?;
    Some(file)
}

/// A regular file that nobody but this user or root can have written, made if it
/// is not there.
fn checked(path: &Path) -> Result<(OwnedFd, Stat), AuditFileError> {
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::CREATE
        | if Check::AuditLink.on() { OFlags::NOFOLLOW } else { OFlags::empty() }
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    usable(path, flags)
}

fn usable(path: &Path, flags: OFlags) -> Result<(OwnedFd, Stat), AuditFileError> {
    let unavailable = |what| move |source| AuditFileError::Unavailable { path: path.to_owned(), what, source };
    let file = match rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)) {
        Ok(file) => file,
        Err(Errno::LOOP) => return Err(AuditFileError::Link(path.to_owned())),
        opened => opened.map_err(unavailable("opened"))?,
    };
    let stat = rustix::fs::fstat(&file).map_err(unavailable("looked at"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(AuditFileError::NotAFile(path.to_owned()));
    }
    if Check::AuditTrust.on() {
        trusted(stat.st_uid, stat.st_mode)
            .map_err(|source| AuditFileError::Untrusted { path: path.to_owned(), source })?;
    }
    Ok((file, stat))
}

/// Why the file could not be used, as far as that can be told without making it.
pub(super) fn doubts(path: &Path) -> Option<AuditFileError> {
    let unavailable = |what, source| AuditFileError::Unavailable { path: path.to_owned(), what, source };
    match rustix::fs::lstat(path) {
        Ok(_) => {
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            usable(path, flags | OFlags::CLOEXEC).err()
        }
        Err(Errno::NOENT) => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let writable = rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK);
            writable.err().map(|error| unavailable("made", error))
        }
        Err(error) => Some(unavailable("opened", error)),
    }
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// One process at a time renames; who finds the lock taken writes to the file it
/// has, which is then the newest of those put aside.
fn put_aside(path: &Path, max: u64) -> Result<Option<OwnedFd>, AuditFileError> {
    let (lock, _) = checked(&beside(path, "lock"))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // Another process may have done it before this one had the lock.
    let (file, stat) = checked(path)?;
    if size(&stat) < max {
        return Ok(Some(file));
    }
    for older in (1..GENERATIONS).rev() {
        match rustix::fs::rename(beside(path, &older.to_string()), beside(path, &(older + 1).to_string())) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    rustix::fs::rename(path, beside(path, "1"))?;
    checked(path).map(|(file, _)| Some(file))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(end);
    name.into()
}

fn is_torn(file: &OwnedFd) -> bool {
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Ok(size) = rustix::fs::fstat(file).map(|stat| size(&stat)) else { return false };
        let mut last = [0];
        let end = match size.checked_sub(1) {
            None => return false,
            Some(at) => rustix::io::pread(file, &mut last, at),
        };
        match end {
            Ok(1) if last != *b"\n" => {}
            // Truncated meanwhile.
            Ok(0) => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
