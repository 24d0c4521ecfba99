//! Recognises a caller that is gone: the pipe or socket at stdout has no reader any more.
//!
//! The CLI starts a CPI in a process group of its own, so Ctrl-C ends only the CLI, and the CPI gets
//! no signal. A closed stderr or a lost parent does not count: a caller may close its end of stderr,
//! or start a CPI through a script that ends first.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fs::FileType;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// The epoll instance with stdout in it; `None` if stdout is neither a pipe nor a socket. There is
/// one stdout, so there is one instance for the process.
static STDOUT: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Watches stdout from now on. Must be called before the lock-down.
pub fn watch_stdout() {
    STDOUT.get_or_init(|| register().ok().flatten());
}

fn register() -> rustix::io::Result<Option<OwnedFd>> {
    let stdout = rustix::stdio::stdout();
    let kind = FileType::from_raw_mode(rustix::fs::fstat(stdout)?.st_mode);
    if !matches!(kind, FileType::Fifo | FileType::Socket) {
        return Ok(None);
    }
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    // The kernel always reports errors and hang-ups. Nothing else is asked for: a socket whose peer
    // has only finished sending still has a reader.
    epoll::add(&epoll, stdout, EventData::new_u64(0), EventFlags::empty())?;
    Ok(Some(epoll))
}

/// Returns true if stdout is watched and has no reader any more.
pub fn is_gone() -> bool {
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let Some(Some(epoll)) = STDOUT.get() else { return false };
    let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }];
    epoll::wait(epoll, &mut events[..], Some(&AT_ONCE)).is_ok_and(|count| count > 0)
}
