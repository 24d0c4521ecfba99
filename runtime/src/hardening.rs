//! Walls around the guest's process, for the day when the engine's breaks.
//!
//! `lock_down` comes last: when all that a call needs is open, no other thread runs,
//! and the guest's code is next. From there on nothing is opened, executed or mapped
//! as code, and connections go to granted ports alone. What this machine does not give
//! is reported, and fails the call where the operator demands it. Must not weaken
//! anything that stands without it.

mod achieved;
#[cfg(feature = "holes")]
pub mod hook;
pub mod landlock;
mod level;
mod network;
pub mod process;
pub mod seccomp;

pub use achieved::{WallError, Walls};
pub use level::Hardening;
pub use network::Network;

use crate::failure::Failure;
use crate::limits::Limits;
use seccomp::Threads;

/// What a call still needs once it is locked down.
pub struct Remaining<'a> {
    pub network: Network,
    /// Files that were opened to be read later.
    pub files: usize,
    pub limits: &'a Limits,
}

/// Of a call, right before the guest's code. `None`: the operator turned it off.
pub fn lock_down(level: Hardening, remaining: Remaining<'_>) -> Result<Option<Walls>, Failure> {
    let walls = match level {
        Hardening::Off => None,
        Hardening::BestEffort | Hardening::Required => {
            process::before_guest(remaining.files, remaining.limits);
            Some(build(remaining.network, Threads::All))
        }
    };
    if let (Hardening::Required, Some(walls)) = (level, &walls) {
        walls.demand()?;
    }
    #[cfg(feature = "holes")]
    hook::run(hook::Whose::Call);
    Ok(walls)
}

/// What a call would get from this machine: tried for real, on a thread that
/// ends right after.
pub fn tried() -> Walls {
    let tried = std::thread::spawn(|| build(Network::Ports([53].into()), Threads::This)).join();
    tried.unwrap_or_else(|_| Walls::untried())
}

fn build(network: Network, threads: Threads) -> Walls {
    let no_new_privs = process::no_new_privs();
    // This order, as the filter forbids to make a ruleset.
    let landlock = landlock::restrict(&network);
    let seccomp = seccomp::install(&network, threads);
    Walls { no_new_privs, landlock, seccomp, network }
}
