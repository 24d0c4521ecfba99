//! What only root can set up: other users, and small or read-only disks.

use crate::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user that owns nothing.
pub const NOBODY: u32 = 65_534;

/// Another one.
pub const SOMEBODY: u32 = 65_533;

/// Whether this is root; reports what is skipped where it is not.
pub fn is_root(for_what: &str) -> bool {
    let root = rustix::process::geteuid().is_root() && others_exist();
    if !root {
        skip("root", &format!("{for_what}: only root can do it"));
    }
    root
}

/// In a user namespace root may be the only user there is.
fn others_exist() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let count = |line: &str| line.split_whitespace().nth(2).and_then(|count| count.parse::<u64>().ok());
    map.lines().filter_map(count).sum::<u64>() > u64::from(NOBODY)
}

/// Gives a file or a whole directory to a user.
pub fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            give(&entry.path(), user);
        }
    }
}

/// A file system in memory, gone when this is dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts at the directory, or answers `None` where this machine does not
    /// let even root do that (some containers).
    pub fn mount(at: &Path, options: &str) -> Option<SmallDisk> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(SmallDisk(at.to_owned()));
        }
        skip("tmpfs", &format!("a file system in memory with {options}: this machine does not let root mount it"));
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
