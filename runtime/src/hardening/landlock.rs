//! Landlock: no file can be opened and no port reached that was not named.
//!
//! No path is ever allowed: what a call reads later is open by then. Binds the
//! calling thread and those it starts (the kernel knew no other way for long),
//! so it comes before every other thread.

use super::{Network, WallError};
use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, NetPort, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use wasm_cpi_checks::Check;

/// The newest set of rights that was looked at; an older kernel holds those it knows.
const NEWEST: ABI = ABI::V9;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landlock {
    pub abi: i32,
    /// Whether ports are held, since ABI 4.
    pub tcp: bool,
}

pub fn restrict(network: &Network) -> Result<Landlock, WallError> {
    if !Check::WallLandlock.on() {
        return Err(WallError::LeftOut);
    }
    let status = enforced(network)?;
    match (&status.ruleset, &status.landlock) {
        (_, LandlockStatus::NotEnabled) => Err(WallError::NotEnabled),
        (_, LandlockStatus::NotImplemented) => Err(WallError::NotImplemented),
        (RulesetStatus::NotEnforced, _) => Err(WallError::NotEnforced),
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(Landlock { abi: number(*effective_abi), tcp: *effective_abi >= ABI::V4 })
        }
    }
}

fn enforced(network: &Network) -> Result<RestrictionStatus, RulesetError> {
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
    fn an_abi_has_its_number() {
        assert_eq!([ABI::Unsupported, ABI::V1, ABI::V4, NEWEST].map(number), [0, 1, 4, 9]);
    }
}
