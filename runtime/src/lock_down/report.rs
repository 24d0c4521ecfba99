//! The result of a lock-down: one line for the audit log and `check`, and the error if a required
//! mechanism is missing.

use super::Network;
use super::landlock::Landlock;
use crate::failure::Failure;
use landlock::RulesetError;
use rustix::io::Errno;
use seccompiler::BackendError;
use std::fmt;

/// The reason why a mechanism is not in effect.
#[derive(Debug, thiserror::Error)]
pub enum LockDownError {
    #[error("turned off by a mutation test")]
    TurnedOff,
    /// The thread of the probe ended early.
    #[error("the probe failed")]
    ProbeFailed,
    #[error(transparent)]
    Privileges(#[from] Errno),
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    #[error("this kernel has it, but it is not enabled")]
    NotEnabled,
    #[error("this kernel does not support it")]
    NotImplemented,
    #[error("this kernel does not enforce it")]
    NotEnforced,
    #[error("no filter was written for this architecture")]
    Architecture,
    #[error(transparent)]
    Filter(#[from] BackendError),
    #[error(transparent)]
    Install(#[from] seccompiler::Error),
}

/// The mechanisms of one lock-down: each is in effect, or there is a reason why it is not.
#[derive(Debug)]
pub struct LockDownReport {
    pub no_new_privs: Result<(), LockDownError>,
    pub capabilities: Result<(), LockDownError>,
    pub landlock: Result<Landlock, LockDownError>,
    pub seccomp: Result<(), LockDownError>,
    pub network: Network,
}

impl LockDownReport {
    /// Returns the report of a probe that ended early.
    pub(super) fn of_failed_probe() -> LockDownReport {
        LockDownReport {
            no_new_privs: Err(LockDownError::ProbeFailed),
            capabilities: Err(LockDownError::ProbeFailed),
            landlock: Err(LockDownError::ProbeFailed),
            seccomp: Err(LockDownError::ProbeFailed),
            network: Network::None,
        }
    }

    /// Returns the name of each mechanism, the reason why it is missing, if it is, and the remedy.
    fn mechanisms_with_remedies(&self) -> [(&'static str, Option<&LockDownError>, &'static str); 4] {
        [
            ("no-new-privs", self.no_new_privs.as_ref().err(), "allow `prctl` in the sandbox that runs the CPI"),
            ("capability drop", self.capabilities.as_ref().err(), "allow `capset` in the sandbox that runs the CPI"),
            (
                "landlock",
                self.landlock.as_ref().err(),
                "run a kernel of 5.13 or newer with `landlock` among its security modules (`lsm=`)",
            ),
            (
                "seccomp",
                self.seccomp.as_ref().err(),
                "run a kernel with seccomp filters, and allow them in the sandbox that runs the CPI",
            ),
        ]
    }

    /// Returns each missing mechanism that `required` demands, with the reason and the remedy.
    pub fn missing(&self) -> Vec<String> {
        let each = self.mechanisms_with_remedies().into_iter();
        each.filter_map(|(what, why, remedy)| Some(format!("{what} ({}; {remedy})", why?))).collect()
    }

    /// Returns the names of the mechanisms in effect, without the ports of a policy.
    pub fn mechanisms(&self) -> String {
        self.in_effect("landlock tcp ports")
    }

    fn in_effect(&self, ports: &str) -> String {
        let landlock = self.landlock.as_ref().ok();
        let parts = [
            self.capabilities.is_ok().then(|| "capability drop".to_owned()),
            self.no_new_privs.is_ok().then(|| "no-new-privs".to_owned()),
            landlock.map(|landlock| format!("landlock fs (ABI {})", landlock.abi)),
            landlock.filter(|landlock| landlock.tcp).map(|_| ports.to_owned()),
            self.seccomp.is_ok().then(|| "seccomp".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }

    /// Fails if a mechanism that `required` demands is missing.
    pub fn ensure_complete(&self) -> Result<(), Failure> {
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::config(format!(
            "`hardening` is `required`, but this machine lacks: {}; or set `hardening` to `best-effort`",
            missing.join("; ")
        )))
    }
}

/// Writes the line of the audit log: `capability drop, no-new-privs, landlock fs (ABI 7), landlock
/// tcp ports [53, 443], seccomp; UDP is not restricted`.
impl fmt::Display for LockDownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_effect(&format!("landlock tcp ports {}", self.network)))?;
        for (what, why, _) in self.mechanisms_with_remedies() {
            if let Some(why) = why {
                write!(f, "; no {what} ({why})")?;
            }
        }
        if self.landlock.as_ref().is_ok_and(|landlock| !landlock.tcp) {
            f.write_str("; TCP ports are not restricted")?;
        }
        f.write_str(match (&self.network, &self.seccomp) {
            (Network::None, Ok(())) => "; no sockets",
            _ => "; UDP is not restricted",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(landlock: Result<Landlock, LockDownError>) -> LockDownReport {
        let (no_new_privs, capabilities, seccomp) = (Ok(()), Ok(()), Ok(()));
        LockDownReport { no_new_privs, capabilities, landlock, seccomp, network: Network::to([443]) }
    }

    #[test]
    fn the_line_lists_the_mechanisms_in_effect_and_the_missing_ones() {
        let new = || Ok(Landlock { abi: 7, tcp: true });
        let cases = [
            (
                report(new()),
                "capability drop, no-new-privs, landlock fs (ABI 7), landlock tcp ports [53, 443], seccomp; UDP is not restricted",
            ),
            (
                LockDownReport { network: Network::None, ..report(new()) },
                "capability drop, no-new-privs, landlock fs (ABI 7), landlock tcp ports [], seccomp; no sockets",
            ),
            (
                report(Ok(Landlock { abi: 3, tcp: false })),
                "capability drop, no-new-privs, landlock fs (ABI 3), seccomp; TCP ports are not restricted; UDP is not restricted",
            ),
            (
                report(Err(LockDownError::NotImplemented)),
                "capability drop, no-new-privs, seccomp; no landlock (this kernel does not support it); UDP is not restricted",
            ),
            (
                LockDownReport { seccomp: Err(LockDownError::TurnedOff), network: Network::None, ..report(new()) },
                "capability drop, no-new-privs, landlock fs (ABI 7), landlock tcp ports []; no seccomp (turned off by a mutation test); UDP is not restricted",
            ),
        ];
        for (report, line) in cases {
            assert_eq!(report.to_string(), line);
        }
    }

    #[test]
    fn required_hardening_names_each_missing_mechanism_and_the_remedy() {
        assert_eq!(report(Ok(Landlock { abi: 3, tcp: false })).ensure_complete(), Ok(()));
        let failure = LockDownReport::of_failed_probe().ensure_complete().unwrap_err().to_string();
        assert!(failure.starts_with("config: `hardening` is `required`"), "{failure}");
        for said in ["lacks: no-new-privs", "; capability drop", "; landlock", "; seccomp"]
            .map(|missing| format!("{missing} (the probe failed; "))
        {
            assert!(failure.contains(&said), "{said}: {failure}");
        }
        for said in ["`lsm=`", "`best-effort`"] {
            assert!(failure.contains(said), "{said}: {failure}");
        }
    }
}
