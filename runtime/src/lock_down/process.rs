//! The parts of the lock-down that are plain properties of the process: limits, working directory,
//! `no_new_privs`, capabilities. Errors of limits and of the working directory
//! are ignored, because lowering a limit and changing to `/` do not fail.

use super::LockDownError;
use crate::limits::Limits;
use crate::startup::lower_limit;
use rustix::process::Resource;
use rustix::thread::{CapabilitySet, CapabilitySets};
use wasm_cpi_checks::Check;

/// Descriptors in addition to the preopened files: sockets, the image, the audit log, epoll.
const DESCRIPTORS: u64 = 64;

/// Threads that can be busy at once.
const THREADS: u64 = 4;

/// Opens the source of random numbers, lowers the limits on descriptors and CPU time, and changes to
/// `/`, after everything else is open. File sizes stay unlimited because of the audit log, and so does
/// the number of processes, which is counted per user.
pub(super) fn prepare_process(open_files: usize, limits: &Limits) {
    open_random_source();
    let _ = lower_limit(Resource::Nofile, DESCRIPTORS + open_files as u64);
    // Ends a process whose deadline does not work any more. A normal call never gets this far.
    let wall = limits.wall_seconds.max(limits.create_stemcell_wall_seconds) + limits.cleanup_seconds;
    let _ = lower_limit(Resource::Cpu, wall * THREADS + 60);
    let _ = rustix::process::chdir("/");
}

/// Uses the source of random numbers once, because its first use may open a file.
pub fn open_random_source() {
    let _ = getrandom::fill(&mut [0]);
}

/// Drops all capabilities of this thread and of threads that it starts. Without them, root is the
/// owner of its files and nothing more. Another user has none, so nothing changes.
pub fn drop_capabilities() -> Result<(), LockDownError> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    let dropped = Check::LockDownCapabilities.perform(|| rustix::thread::set_capabilities(None, none));
    Ok(dropped.ok_or(LockDownError::TurnedOff)??)
}

/// Prevents this process and its children from getting new privileges.
pub fn no_new_privs() -> Result<(), LockDownError> {
    let set = Check::LockDownPrivileges.perform(|| rustix::thread::set_no_new_privs(true));
    Ok(set.ok_or(LockDownError::TurnedOff)??)
}
