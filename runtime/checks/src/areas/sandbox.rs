//! What the sandbox offers to a guest.

use crate::explanation::{Entry, safeguard};

pub(crate) const WasiEnvironment: Entry =
    safeguard("wasi-environment", "The guest sees no environment variables of this process.");
pub(crate) const WasiArguments: Entry = safeguard("wasi-arguments", "The guest sees no arguments of this process.");
pub(crate) const WasiFilesystem: Entry = safeguard("wasi-filesystem", "The guest has no files.");
pub(crate) const StdioLine: Entry =
    safeguard("stdio-line", "Only the start of an endless line on the guest's stdout is kept.");
pub(crate) const RandomSize: Entry = safeguard("random-size", "The guest gets at most 64 KiB of random bytes at once.");
pub(crate) const Instances: Entry =
    safeguard("instances", "The numbers of instances, tables and memories of a guest are bounded.");
