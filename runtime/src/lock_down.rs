//! The lock-down of a process before it runs guest code. It limits what an attacker can do who
//! escapes from the engine's sandbox.
//!
//! `hardening` in the config is the level of the lock-down.
//!
//! `apply` is the last step before the guest's code: everything that a call needs is open, and
//! no other thread runs. After it the process cannot open or execute a file, cannot map memory as
//! code, and can connect only to granted ports. Mechanisms that this machine does not support are
//! reported; with `required` the call fails. The lock-down must not weaken the other protections.

#[cfg(feature = "mutation-testing")]
pub mod hook;
pub mod landlock;
mod level;
mod network;
pub mod process;
mod report;
pub mod seccomp;

pub use level::LockDownLevel;
pub use network::Network;
pub use report::{LockDownError, LockDownReport};

use crate::failure::Failure;
use crate::limits::Limits;
use seccomp::{Threads, Writes};

/// The resources that a call uses after the lock-down.
pub struct CallResources<'a> {
    pub network: Network,
    /// The number of files that were opened to be read later.
    pub files: usize,
    /// True if the call may write the files of kept tokens, which are open.
    pub writes_tokens: bool,
    pub limits: &'a Limits,
}

/// Locks the process of a call down, right before the guest's code runs. Returns `None` if the
/// operator turned the lock-down off, and fails if a required mechanism is missing.
pub fn apply(level: LockDownLevel, resources: CallResources<'_>) -> Result<Option<LockDownReport>, Failure> {
    let report = match level {
        LockDownLevel::Off => None,
        LockDownLevel::BestEffort | LockDownLevel::Required => {
            process::prepare_process(resources.files, resources.limits);
            let writes = if resources.writes_tokens { Writes::Tokens } else { Writes::Nothing };
            Some(restrict(resources.network, writes, Threads::All))
        }
    };
    if let (LockDownLevel::Required, Some(report)) = (level, &report) {
        report.ensure_complete()?;
    }
    #[cfg(feature = "mutation-testing")]
    hook::run(hook::Role::Call);
    Ok(report)
}

/// Finds out which mechanisms this machine supports, by applying them to a thread that ends
/// right after.
pub fn probe() -> LockDownReport {
    let probed = std::thread::spawn(|| restrict(Network::Ports([53].into()), Writes::Nothing, Threads::This)).join();
    probed.unwrap_or_else(|_| LockDownReport::of_failed_probe())
}

fn restrict(network: Network, writes: Writes, threads: Threads) -> LockDownReport {
    let no_new_privs = process::no_new_privs();
    let capabilities = process::drop_capabilities();
    // Landlock comes first, because the seccomp filter forbids its system calls.
    let landlock = landlock::restrict(&network);
    let seccomp = seccomp::install(&network, writes, threads);
    LockDownReport { no_new_privs, capabilities, landlock, seccomp, network }
}
