//! The first steps of a process that handles secrets or untrusted bytes, before it opens a file.
//! No setting turns them off. They do not protect against root.

use nix::sys::signal::SigSet;
use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
#[cfg(feature = "compiler")]
use rustix::thread::{Gid, Uid};
use std::os::fd::RawFd;
use wasm_cpi_checks::Check;

/// Unblocks all signals, closes inherited descriptors, makes new files private to this user and
/// prevents core dumps. Must be called before the first file is opened.
///
/// Traps and deadlines use signals, and callers end a call with one, so a mask that was inherited must
/// not stay.
pub fn secure_process() {
    let _ = SigSet::empty().thread_set_mask();
    Check::LockDownDescriptors.perform(close_inherited);
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    Check::LockDownCoreDumps.perform(|| {
        let _ = lower_limit(Resource::Core, 0);
        // The limit has no effect where the kernel pipes dumps to a program. This also prevents
        // other processes of this user from tracing this one.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    });
}

/// Lowers a limit of this process. A limit that is already lower stays as it is.
pub fn lower_limit(resource: Resource, limit: u64) -> std::io::Result<()> {
    lower_limits(resource, limit, limit)
}

/// Lowers the soft and the hard limit of this process.
pub fn lower_limits(resource: Resource, soft: u64, hard: u64) -> std::io::Result<()> {
    let lower = |limit: u64| Some(getrlimit(resource).maximum.map_or(limit, |already| already.min(limit)));
    Ok(setrlimit(resource, Rlimit { current: lower(soft), maximum: lower(hard) })?)
}

/// Changes the user of this process permanently. Must be called before another thread exists.
#[cfg(feature = "compiler")]
pub fn change_user(uid: u32, gid: u32) -> std::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::thread::set_thread_groups(&[gid])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Closes all descriptors except stdin, stdout and stderr.
fn close_inherited() {
    const STDERR: RawFd = 2;
    // SAFETY: this process has opened nothing yet, so no descriptor in use is closed.
    #[allow(unsafe_code)]
    let closed = unsafe { libc::syscall(libc::SYS_close_range, STDERR + 1, libc::c_uint::MAX, 0) };
    if closed == 0 {
        return;
    }
    // Kernels before Linux 5.9 do not have `close_range`.
    let listed: Option<Vec<RawFd>> = std::fs::read_dir("/proc/self/fd").ok().map(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect()
    });
    // Without /proc, close as many descriptors as most users may have.
    for descriptor in listed.unwrap_or_else(|| (STDERR + 1..1024).collect()) {
        if descriptor > STDERR {
            let _ = nix::unistd::close(descriptor);
        }
    }
}
