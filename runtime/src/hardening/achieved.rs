//! What was achieved, as a value: one line for the audit log and `check`, and
//! the verdict where all of it is demanded.

use super::Network;
use super::landlock::Landlock;
use crate::failure::Failure;
use landlock::RulesetError;
use rustix::io::Errno;
use seccompiler::BackendError;
use std::fmt;

/// Why a wall does not stand.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// By a mutation test.
    #[error("left out")]
    LeftOut,
    /// The thread that tried it ended early.
    #[error("trying it failed")]
    Untried,
    #[error(transparent)]
    Privileges(#[from] Errno),
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    #[error("this kernel has it, but it is not turned on")]
    NotEnabled,
    #[error("this kernel has none")]
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

/// Each wall, or why it does not stand.
#[derive(Debug)]
pub struct Walls {
    pub no_new_privs: Result<(), WallError>,
    pub landlock: Result<Landlock, WallError>,
    pub seccomp: Result<(), WallError>,
    pub network: Network,
}

impl Walls {
    pub(super) fn untried() -> Walls {
        let (no_new_privs, seccomp) = (Err(WallError::Untried), Err(WallError::Untried));
        Walls { no_new_privs, landlock: Err(WallError::Untried), seccomp, network: Network::None }
    }

    /// What `required` demands and is not there, each with the reason and what to do.
    pub fn missing(&self) -> Vec<String> {
        let parts = [
            ("no-new-privs", self.no_new_privs.as_ref().err(), "let no sandbox around the CPI forbid `prctl`"),
            (
                "landlock",
                self.landlock.as_ref().err(),
                "run a kernel of 5.13 or newer with `landlock` among its security modules (`lsm=`)",
            ),
            (
                "seccomp",
                self.seccomp.as_ref().err(),
                "run a kernel with seccomp filters, and let no sandbox forbid them",
            ),
        ];
        let missing = parts.into_iter().filter_map(|(what, why, remedy)| Some((what, why?, remedy)));
        missing.map(|(what, why, remedy)| format!("no {what} ({why}): {remedy}")).collect()
    }

    /// What this machine gives, whatever the policy.
    pub fn kinds(&self) -> String {
        self.standing("landlock tcp ports")
    }

    fn standing(&self, ports: &str) -> String {
        let landlock = self.landlock.as_ref().ok();
        let parts = [
            self.no_new_privs.is_ok().then(|| "no-new-privs".to_owned()),
            landlock.map(|landlock| format!("landlock fs (ABI {})", landlock.abi)),
            landlock.filter(|landlock| landlock.tcp).map(|_| ports.to_owned()),
            self.seccomp.is_ok().then(|| "seccomp".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }

    /// The verdict under `required`.
    pub fn demand(&self) -> Result<(), Failure> {
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::config(format!(
            "`hardening` is `required`, but this machine gives {}; or set `hardening` to `best-effort`",
            missing.join("; ")
        )))
    }
}

/// For the audit log: `no-new-privs, landlock fs (ABI 7), landlock tcp ports
/// [53, 443], seccomp; UDP is not held`.
impl fmt::Display for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.standing(&format!("landlock tcp ports {}", self.network)))?;
        for (what, why) in [
            ("no-new-privs", self.no_new_privs.as_ref().err()),
            ("landlock", self.landlock.as_ref().err()),
            ("seccomp", self.seccomp.as_ref().err()),
        ] {
            if let Some(why) = why {
                write!(f, "; no {what} ({why})")?;
            }
        }
        if self.landlock.as_ref().is_ok_and(|landlock| !landlock.tcp) {
            f.write_str("; TCP ports are not held")?;
        }
        f.write_str(match (&self.network, &self.seccomp) {
            (Network::None, Ok(())) => "; no sockets",
            _ => "; UDP is not held",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls(landlock: Result<Landlock, WallError>) -> Walls {
        Walls { no_new_privs: Ok(()), landlock, seccomp: Ok(()), network: Network::to([443]) }
    }

    #[test]
    fn the_line_says_what_stands_and_what_does_not() {
        let new = || Ok(Landlock { abi: 7, tcp: true });
        let cases = [
            (walls(new()), "no-new-privs, landlock fs (ABI 7), landlock tcp ports [53, 443], seccomp; UDP is not held"),
            (
                Walls { network: Network::None, ..walls(new()) },
                "no-new-privs, landlock fs (ABI 7), landlock tcp ports [], seccomp; no sockets",
            ),
            (
                walls(Ok(Landlock { abi: 3, tcp: false })),
                "no-new-privs, landlock fs (ABI 3), seccomp; TCP ports are not held; UDP is not held",
            ),
            (
                walls(Err(WallError::NotImplemented)),
                "no-new-privs, seccomp; no landlock (this kernel has none); UDP is not held",
            ),
            (
                Walls { seccomp: Err(WallError::LeftOut), network: Network::None, ..walls(new()) },
                "no-new-privs, landlock fs (ABI 7), landlock tcp ports []; no seccomp (left out); UDP is not held",
            ),
        ];
        for (walls, line) in cases {
            assert_eq!(walls.to_string(), line);
        }
    }

    #[test]
    fn a_demand_names_each_missing_wall_and_the_remedy() {
        assert_eq!(walls(Ok(Landlock { abi: 3, tcp: false })).demand(), Ok(()));
        let failure = Walls::untried().demand().unwrap_err().to_string();
        assert!(failure.starts_with("config: `hardening` is `required`"), "{failure}");
        let why = "(trying it failed)";
        for said in ["no no-new-privs", "no landlock", "no seccomp"].map(|wall| format!("{wall} {why}")) {
            assert!(failure.contains(&said), "{said}: {failure}");
        }
        for said in ["`lsm=`", "`best-effort`"] {
            assert!(failure.contains(said), "{said}: {failure}");
        }
    }
}
