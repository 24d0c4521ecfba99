//! What the process can no longer do when the guest's code runs.

use crate::explanation::{Entry, safeguard};

pub(crate) const LockDownPrivileges: Entry = safeguard("lock-down-privileges", "A call cannot get new privileges.");
pub(crate) const LockDownCapabilities: Entry =
    safeguard("lock-down-capabilities", "A call that root started has none of root's capabilities.");
pub(crate) const LockDownLandlock: Entry =
    safeguard("lock-down-landlock", "A call can open no file and connect to no port that it does not need.");
pub(crate) const LockDownSeccomp: Entry =
    safeguard("lock-down-seccomp", "A call can make no system call that it does not need.");
pub(crate) const LockDownDescriptors: Entry =
    safeguard("lock-down-descriptors", "Descriptors that the process inherited are closed.");
pub(crate) const LockDownCoreDumps: Entry =
    safeguard("lock-down-core-dumps", "The process writes no core dump and cannot be traced by others.");
