//! What a process does before it opens its first file, if it will handle secrets or a
//! stranger's bytes. No setting turns it off, and none of it hides anything from root.

use nix::sys::signal::SigSet;
use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::RawFd;
use wasm_cpi_checks::Check;

/// Before the first file is opened: descriptors of whoever started us are
/// closed, files we make are ours alone, and no core dump ever holds a secret.
/// A signal that was blocked before would be one that a trap, a deadline or a
/// caller counts on.
pub fn secure_process() {
    let _ = SigSet::empty().thread_set_mask();
    if Check::WallDescriptors.on() {
        close_inherited();
    }
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    if Check::WallDumps.on() {
        let _ = lower(Resource::Core, 0);
        // Where dumps are piped to a program, the limit does not count. Also keeps
        // this user's other processes from tracing this one.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Never raises a limit.
pub fn lower(resource: Resource, limit: u64) -> std::io::Result<()> {
    let limit = getrlimit(resource).maximum.map_or(limit, |already| already.min(limit));
    Ok(setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

/// All but stdin, stdout and stderr. Nothing of ours is open yet, so that no
/// descriptor in use can be among them.
fn close_inherited() {
    const STDERR: RawFd = 2;
    // SAFETY: this process has opened nothing yet, so that no descriptor of ours is closed.
    #[allow(unsafe_code)]
    let closed = unsafe { libc::syscall(libc::SYS_close_range, STDERR + 1, libc::c_uint::MAX, 0) };
    if closed == 0 {
        return;
    }
    // Before Linux 5.9.
    let listed: Option<Vec<RawFd>> = std::fs::read_dir("/proc/self/fd").ok().map(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect()
    });
    // Without /proc: as many as most users may have.
    for descriptor in listed.unwrap_or_else(|| (STDERR + 1..1024).collect()) {
        if descriptor > STDERR {
            let _ = nix::unistd::close(descriptor);
        }
    }
}
