//! A kernel that lacks some system calls, for one program: a filter around it
//! answers them as an old kernel would.

use crate::process::{self, Finished, GUARD};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::process::Command;

pub const LANDLOCK: &[libc::c_long] = &[libc::SYS_landlock_create_ruleset];

pub const SECCOMP: &[libc::c_long] = &[libc::SYS_seccomp];

/// Runs a program where these calls are not there.
pub fn run(calls: &[libc::c_long], command: &mut Command, stdin: &[u8]) -> Finished {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let not_there = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter = std::env::consts::ARCH
        .try_into()
        .and_then(|here| SeccompFilter::new(rules, SeccompAction::Allow, not_there, here))
        .and_then(BpfProgram::try_from);
    let filter = filter.unwrap_or_else(|error| panic!("no filter: {error}"));
    // Held by this thread and what it starts, and gone with it.
    let ran = std::thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            seccompiler::apply_filter(&filter).unwrap_or_else(|error| panic!("no filter: {error}"));
            process::run(command, stdin, GUARD)
        });
        filtered.join()
    });
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
