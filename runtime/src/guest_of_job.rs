//! The guest of a job: whose leaks are remembered, and whose tokens are kept.

use std::path::PathBuf;

/// The guest of a job, or of one of its modules.
#[derive(Clone, Debug)]
pub struct GuestOfJob<'a> {
    /// The complete path of the job's config, without `..`: the Director's calls and an operator
    /// write it in different ways. Jobs may share a cache.
    pub config: PathBuf,
    /// The name of the module in that config; `None` for its own guest.
    pub module: Option<&'a str>,
    pub guest_sha256: &'a str,
}
