//! What the process gives up by itself when it is locked down. None of it can fail a
//! call: the kernel refuses none of it, and the walls that count report for themselves.

use super::WallError;
use crate::limits::Limits;
use crate::startup::lower;
use rustix::process::Resource;
use wasm_cpi_checks::Check;

/// Descriptors beside the held files: sockets, the image, the audit log, epoll.
const DESCRIPTORS: u64 = 64;

/// Threads that can be busy at once.
const THREADS: u64 = 4;

/// When all is open. File sizes stay unlimited, as the audit log's is not ours
/// to decide about, and so does the number of processes, which counts per user.
pub(super) fn before_guest(files: usize, limits: &Limits) {
    first_uses();
    let _ = lower(Resource::Nofile, DESCRIPTORS + files as u64);
    // For code that stopped the clock: no call gets here by itself.
    let wall = limits.wall_seconds.max(limits.create_stemcell_wall_seconds) + limits.cleanup_seconds;
    let _ = lower(Resource::Cpu, wall * THREADS + 60);
    let _ = rustix::process::chdir("/");
}

/// What opens a file when it is first used is used once while it can.
pub fn first_uses() {
    let _ = getrandom::fill(&mut [0]);
}

pub fn no_new_privs() -> Result<(), WallError> {
    if !Check::WallPrivileges.on() {
        return Err(WallError::LeftOut);
    }
    Ok(rustix::thread::set_no_new_privs(true)?)
}
