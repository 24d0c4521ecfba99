//! Lets one process at a time compile a guest, so that the others find it in the cache.
//!
//! Without this, twenty first calls on an empty cache would compile the same guest twenty times at
//! once. The lock belongs to an open file in the cache directory, so the kernel releases it when
//! its holder dies. It only saves work: a process that cannot get it compiles without it.

use crate::caller;
use crate::signals;
use crate::trust::check_owner_and_mode;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;

/// The pause between two attempts to get the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The right to compile one guest. Other processes wait until it is dropped.
pub struct CompileLock<'a> {
    dir: BorrowedFd<'a>,
    name: String,
    _file: OwnedFd,
}

impl<'a> CompileLock<'a> {
    /// Waits until no other process compiles this guest. Returns `None` if the cache cannot be
    /// written, if the wait takes longer than a compilation may, or if the call has to end.
    pub fn acquire(dir: BorrowedFd<'a>, wasm_sha256: &str, compile_seconds: u64) -> Option<CompileLock<'a>> {
        let name = format!("{wasm_sha256}.lock");
        let deadline = Instant::now() + Duration::from_secs(compile_seconds);
        loop {
            if let Some(file) = try_lock(dir, &name).ok()? {
                return Some(CompileLock { dir, name, _file: file });
            }
            if Instant::now() >= deadline || signals::arrived().is_some() || caller::is_gone() {
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for CompileLock<'_> {
    fn drop(&mut self) {
        // The file is removed while it is locked, so that no other process holds the lock of the
        // same file.
        let _ = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
    }
}

/// Returns the locked file, or `None` if another process has it. The file is readable by its owner
/// only, because everyone who can open it could lock it.
fn try_lock(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    let opened = rustix::fs::fstat(&file)?;
    let regular = FileType::from_raw_mode(opened.st_mode) == FileType::RegularFile;
    let untrusted = check_owner_and_mode(opened.st_uid, opened.st_mode).is_err();
    if !regular || Check::CacheFile.refuses(untrusted) {
        return Err(Errno::PERM);
    }
    match rustix::fs::flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error),
    }
    // The last holder may have removed the file after it was opened here.
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(now) if (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino) => Ok(Some(file)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::symlink;

    const GUEST: &str = "0123";

    fn acquire(dir: &File, seconds: u64) -> Option<CompileLock<'_>> {
        CompileLock::acquire(dir.as_fd(), GUEST, seconds)
    }

    fn directory() -> (tempfile::TempDir, File) {
        let dir = tempfile::tempdir().unwrap();
        let open = File::open(dir.path()).unwrap();
        (dir, open)
    }

    #[test]
    fn a_second_process_waits_for_the_first_and_nothing_is_left_in_the_directory() {
        let (dir, open) = directory();
        let first = acquire(&open, 1).unwrap();
        assert!(acquire(&open, 0).is_none(), "two processes have the lock");
        assert!(CompileLock::acquire(open.as_fd(), "another", 0).is_some(), "another guest can be compiled");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| acquire(&open, 10).is_some());
            std::thread::sleep(Duration::from_millis(100));
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().unwrap());
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_file_of_a_holder_that_died_does_not_block() {
        let (dir, open) = directory();
        std::fs::write(dir.path().join("0123.lock"), "").unwrap();
        assert!(acquire(&open, 0).is_some());
    }

    #[test]
    fn a_link_is_not_followed_and_a_file_of_others_is_not_locked() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, open) = directory();
        let path = dir.path().join("0123.lock");
        symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(acquire(&open, 1).is_none() && !dir.path().join("elsewhere").exists());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(acquire(&open, 1).is_none());
    }
}
