//! The seccomp filter: the kernel executes only the system calls listed in `calls`.
//!
//! All others fail with EPERM. The process is not killed, so that the Director always gets a
//! response, and a system call of a newer libc becomes an error that can be read; an attacker
//! gains nothing from that. The filter is installed after the last mapping of code, and applies to
//! all threads at once.

mod calls;
mod tree;

#[cfg(test)]
mod tests;

use super::{LockDownError, Network};
use calls::SyscallRules;
use seccompiler::BpfProgram;
use wasm_cpi_checks::Check;

/// The threads that the filter applies to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    All,
    /// This thread and those that it starts.
    This,
}

/// The kernel's number for this architecture.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// What a process writes beside pipes and the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    Nothing,
    /// The files of kept tokens, which it locks and overwrites in place.
    Tokens,
}

/// Installs the filter. `Network::None` refuses all sockets.
pub fn install(network: &Network, writes: Writes, threads: Threads) -> Result<(), LockDownError> {
    Check::LockDownSeccomp.perform(|| install_filter(network, writes, threads)).ok_or(LockDownError::TurnedOff)?
}

fn install_filter(network: &Network, writes: Writes, threads: Threads) -> Result<(), LockDownError> {
    let architecture = ARCHITECTURE.ok_or(LockDownError::Architecture)?;
    let program = program(architecture, network, writes, std::process::id())?;
    match threads {
        Threads::All => seccompiler::apply_filter_all_threads(&program)?,
        Threads::This => seccompiler::apply_filter(&program)?,
    }
    Ok(())
}

fn program(
    architecture: u32,
    network: &Network,
    writes: Writes,
    own_pid: u32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = SyscallRules::new();
    calls::allow_basics(&mut rules, own_pid)?;
    if *network != Network::None {
        calls::allow_network(&mut rules)?;
    }
    if writes == Writes::Tokens {
        calls::allow_token_files(&mut rules);
    }
    Ok(tree::program(architecture, rules.sorted()))
}
