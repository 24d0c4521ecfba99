//! The file of the audit log. It is opened once, before the guest's code runs. Every line is
//! appended with one write, so that lines of several processes do not mix.
//!
//! Another user who can write to its directory must not be able to redirect the lines: links are
//! not followed, and a file that others can write is not used. Nothing here waits for a lock. Only
//! when the file is opened and its last line is incomplete, it is read again for a few milliseconds.

use crate::config::AuditConfig;
use crate::trust::{Untrusted, check_owner_and_mode};
use rustix::fs::{Access, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wasm_cpi_checks::Check;

/// The number of rotated files that are kept: `<path>.1` is the newest.
pub(super) const GENERATIONS: u32 = 4;

/// The maximum number of times that the end of the file is read while its last line is incomplete. Another process may be
/// writing it.
const MAX_READS: u32 = 5;

/// The reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuditFileError {
    #[error("{} is a symbolic link, which is not followed; set `audit.path` to the file itself", .0.display())]
    Link(PathBuf),
    #[error("{} cannot be {what} ({source}); check the path and the permissions", path.display())]
    Unavailable { path: PathBuf, what: &'static str, source: Errno },
    #[error("{} is not a regular file; set `audit.path` to a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error("{} {source}", path.display())]
    Untrusted { path: PathBuf, source: Untrusted },
    #[error("it cannot be {step} ({source}); check the permissions of its directory")]
    Rotate { step: &'static str, source: Errno },
}

impl AuditFileError {
    /// Returns the check that refused the file, if one did.
    pub(super) fn check(&self) -> Option<Check> {
        match self {
            AuditFileError::Link(_) => Some(Check::AuditLink),
            AuditFileError::Untrusted { .. } => Some(Check::AuditTrust),
            _ => None,
        }
    }
}

/// The open file.
pub(super) struct LogFile {
    file: OwnedFd,
    /// True if the last line is incomplete, because the disk was full.
    torn: AtomicBool,
}

impl LogFile {
    /// Opens the file, and rotates it first if it is full. Also returns a warning if the rotation
    /// failed, which does not prevent writing.
    pub(super) fn open(config: &AuditConfig) -> Result<(LogFile, Option<String>), AuditFileError> {
        let (mut file, stat) = open_or_create(&config.path)?;
        let mut warning = None;
        if config.max_bytes.is_some_and(|max| size(&stat) >= max) {
            match rotate(&config.path, config.max_bytes.unwrap_or(u64::MAX)) {
                Ok(new) => file = new.unwrap_or(file),
                Err(error) => warning = Some(format!("the file is full and cannot be rotated: {error}")),
            }
        }
        let torn = AtomicBool::new(is_torn(&file));
        Ok((LogFile { file: write_only(&file).unwrap_or(file), torn }, warning))
    }

    /// Appends one line, which includes its end.
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
            // The rest must not be written, because it could follow the line of another process.
            Ok(count) => {
                if count > 0 {
                    self.torn.store(true, Ordering::Relaxed);
                }
                Err(io::Error::new(
                    io::ErrorKind::StorageFull,
                    "the disk has no space for a whole line; free some space",
                ))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if the file was deleted, because it was rotated too often since it was opened.
    pub(super) fn is_deleted(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

/// Opens the same file again for writing only, positioned at its end. Then an attacker in this
/// process cannot read or map the lines of other calls. The position is set now, because a
/// locked-down process cannot seek.
fn write_only(file: &OwnedFd) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    rustix::fs::seek(&file, SeekFrom::End(0)).ok()?;
    Some(file)
}

/// Opens a regular file that no one except this user or root can write. Creates it if it does not
/// exist.
fn open_or_create(path: &Path) -> Result<(OwnedFd, Stat), AuditFileError> {
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::CREATE
        | Check::AuditLink.choose(OFlags::NOFOLLOW, OFlags::empty())
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    open_checked(path, flags)
}

fn open_checked(path: &Path, flags: OFlags) -> Result<(OwnedFd, Stat), AuditFileError> {
    let unavailable = |what| move |source| AuditFileError::Unavailable { path: path.to_owned(), what, source };
    let file = match rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)) {
        Ok(file) => file,
        Err(Errno::LOOP) => return Err(AuditFileError::Link(path.to_owned())),
        opened => opened.map_err(unavailable("opened"))?,
    };
    let stat = rustix::fs::fstat(&file).map_err(unavailable("examined"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(AuditFileError::NotAFile(path.to_owned()));
    }
    let untrusted = |source| AuditFileError::Untrusted { path: path.to_owned(), source };
    Check::AuditTrust.perform(|| check_owner_and_mode(stat.st_uid, stat.st_mode).map_err(untrusted)).transpose()?;
    Ok((file, stat))
}

/// Returns the reason why the file could not be used, as far as it can be found without creating it.
pub(super) fn find_problem(path: &Path) -> Option<AuditFileError> {
    let unavailable = |what, source| AuditFileError::Unavailable { path: path.to_owned(), what, source };
    match rustix::fs::lstat(path) {
        Ok(_) => {
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            open_checked(path, flags | OFlags::CLOEXEC).err()
        }
        Err(Errno::NOENT) => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let writable = rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK);
            writable.err().map(|error| unavailable("created", error))
        }
        Err(error) => Some(unavailable("opened", error)),
    }
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Renames the full file and its predecessors, and opens a new one. Only one process does this at a
/// time. A process that does not get the lock returns `None` and writes to the file it has open,
/// which is then the newest rotated one.
fn rotate(path: &Path, max: u64) -> Result<Option<OwnedFd>, AuditFileError> {
    let (lock, _) = open_or_create(&sibling(path, "lock"))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(source) => return Err(AuditFileError::Rotate { step: "locked", source }),
    }
    let unrenamed = |source| AuditFileError::Rotate { step: "renamed", source };
    // Another process may have rotated the file before this one got the lock.
    let (file, stat) = open_or_create(path)?;
    if size(&stat) < max {
        return Ok(Some(file));
    }
    for older in (1..GENERATIONS).rev() {
        match rustix::fs::rename(sibling(path, &older.to_string()), sibling(path, &(older + 1).to_string())) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(source) => return Err(unrenamed(source)),
        }
    }
    rustix::fs::rename(path, sibling(path, "1")).map_err(unrenamed)?;
    open_or_create(path).map(|(file, _)| Some(file))
}

fn sibling(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(end);
    name.into()
}

fn is_torn(file: &OwnedFd) -> bool {
    for attempt in 0..MAX_READS {
        if attempt > 0 {
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
            // Another process truncated the file.
            Ok(0) => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
