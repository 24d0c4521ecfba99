//! Test setups that only root can create: files of other users, and small or
//! read-only file systems.

use crate::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The id of the user `nobody`, who owns no files.
pub const NOBODY: u32 = 65_534;

/// The id of another user without files.
pub const OTHER_USER: u32 = 65_533;

/// Returns true if the test runs as root; otherwise reports `for_what` as skipped.
pub fn is_root(for_what: &str) -> bool {
    let root = rustix::process::geteuid().is_root() && other_users_exist();
    if !root {
        skip("root", &format!("{for_what}: only root can do it"));
    }
    root
}

/// Returns false in a user namespace in which root is the only user.
fn other_users_exist() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let count = |line: &str| line.split_whitespace().nth(2).and_then(|count| count.parse::<u64>().ok());
    map.lines().filter_map(count).sum::<u64>() > u64::from(NOBODY)
}

/// Makes a user the owner of a file or of a directory with all its files.
pub fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            give(&entry.path(), user);
        }
    }
}

/// A file system in memory; dropping this unmounts it.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system at the directory. Returns `None` and reports a skip if root is
    /// not allowed to do that, as in some containers.
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
