//! seccomp: the kernel answers the system calls of `calls`, and no others.
//!
//! Everything else fails with EPERM rather than killing the process: the
//! Director gets a response whatever happens, and a call that a newer libc tries
//! becomes an error that somebody can read. What is refused is of no more use to
//! an attacker in this way than in the other. Goes in after the last mapping of
//! code, and holds for all threads at once.

mod calls;
mod tree;

#[cfg(test)]
mod tests;

use super::{Network, WallError};
use calls::SyscallRules;
use seccompiler::BpfProgram;
use wasm_cpi_checks::Check;

/// Who the filter is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    All,
    /// And those that it starts.
    This,
}

/// How the kernel calls this architecture.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

pub fn install(network: &Network, threads: Threads) -> Result<(), WallError> {
    if !Check::WallSeccomp.on() {
        return Err(WallError::LeftOut);
    }
    let architecture = ARCHITECTURE.ok_or(WallError::Architecture)?;
    let program = program(architecture, network, std::process::id())?;
    match threads {
        Threads::All => seccompiler::apply_filter_all_threads(&program)?,
        Threads::This => seccompiler::apply_filter(&program)?,
    }
    Ok(())
}

fn program(architecture: u32, network: &Network, own_pid: u32) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = SyscallRules::new();
    calls::of_every_guest(&mut rules, own_pid)?;
    if *network != Network::None {
        calls::of_the_network(&mut rules)?;
    }
    Ok(tree::program(architecture, rules.sorted()))
}
