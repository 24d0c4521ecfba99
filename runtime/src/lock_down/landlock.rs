//! Landlock: the process cannot open any file, and can connect only to listed ports.
//!
//! No path is allowed, because all files that a call reads later are already open. The rules apply
//! to the calling thread and to threads that it starts, so they are set before any other thread
//! exists. Older kernels cannot apply them to all threads of a process.

use super::{LockDownError, Network};
use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, NetPort, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use wasm_cpi_checks::Check;

/// The newest set of rights that this program restricts. An older kernel restricts those it knows.
const NEWEST: ABI = ABI::V9;

/// The rules in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landlock {
    pub abi: i32,
    /// True if TCP ports are restricted, which kernels support since ABI 4.
    pub tcp: bool,
}

/// Restricts this thread and those that it starts, as far as the kernel supports it.
pub fn restrict(network: &Network) -> Result<Landlock, LockDownError> {
    let status = Check::LockDownLandlock.perform(|| enforce(network)).ok_or(LockDownError::TurnedOff)??;
    match (&status.ruleset, &status.landlock) {
        (_, LandlockStatus::NotEnabled) => Err(LockDownError::NotEnabled),
        (_, LandlockStatus::NotImplemented) => Err(LockDownError::NotImplemented),
        (RulesetStatus::NotEnforced, _) => Err(LockDownError::NotEnforced),
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(Landlock { abi: number(*effective_abi), tcp: *effective_abi >= ABI::V4 })
        }
    }
}

fn enforce(network: &Network) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    if let Network::Ports(ports) = network {
        for port in ports {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    rules.restrict_self()
}

fn number(abi: ABI) -> i32 {
    (0..).find(|number| ABI::from(*number) == abi).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_abi_has_its_number() {
        assert_eq!([ABI::Unsupported, ABI::V1, ABI::V4, NEWEST].map(number), [0, 1, 4, 9]);
    }
}
