//! What a process gives up by itself, in two steps, and what the hot one does before.
//!
//! `at_start` is for every process that touches secrets or a stranger's bytes,
//! whatever the config says: it hides nothing from anybody who debugs as root.
//! `before_guest` belongs to the lock-down. Neither can fail a call: the kernel
//! refuses none of it, and the walls that count report for themselves.

use crate::holes::Check;
use crate::limits::Limits;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{IntoRawFd, RawFd};

/// Descriptors beside the held files: sockets, the image, the audit log, the policy and
/// what is kept of it, epoll.
const DESCRIPTORS: u64 = 64;

/// Threads that can be busy at once.
const THREADS: u64 = 4;

/// What a call needs of what Rust does before `main`, for a program that begins
/// without: no file that is opened takes the place of a stdin, stdout or stderr that
/// nobody gave us, and who stops reading us is an error and no end. It gives up a
/// message for stacks that overflow. Whether it could be done.
pub fn instead_of_rusts_beginning() -> bool {
    use rustix::stdio::{stderr, stdin, stdout};
    for stream in [stdin(), stdout(), stderr()] {
        if rustix::io::fcntl_getfd(stream) == Err(rustix::io::Errno::BADF) {
            // It gets the lowest number that is free, which is this one's, and keeps it.
            match rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()) {
                Ok(nothing) => _ = nothing.into_raw_fd(),
                Err(_) => return false,
            }
        }
    }
    // SAFETY: nothing of this program is run when it arrives.
    #[allow(unsafe_code)]
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigIgn) }.is_ok()
}

/// Before the first file is opened: descriptors of whoever started us are
/// closed, files we make are ours alone, and no core dump ever holds a secret.
/// A signal that was blocked before would be one that a trap, a deadline or a
/// caller counts on.
pub fn at_start() {
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

pub fn no_new_privs() -> Result<(), String> {
    if !Check::WallPrivileges.on() {
        return Err("left out".into());
    }
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())
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
    // SAFETY: nobody here has a descriptor yet.
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
