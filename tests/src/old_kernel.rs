//! Simulates an old kernel for one program: a seccomp filter fails some system calls
//! with ENOSYS.

use crate::process::{self, Finished, GUARD};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::process::Command;

pub const LANDLOCK: &[libc::c_long] = &[libc::SYS_landlock_create_ruleset];

pub const SECCOMP: &[libc::c_long] = &[libc::SYS_seccomp];

/// Runs a program for which these system calls do not exist.
pub fn run(calls: &[libc::c_long], command: &mut Command, stdin: &[u8]) -> Finished {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter = std::env::consts::ARCH
        .try_into()
        .and_then(|here| SeccompFilter::new(rules, SeccompAction::Allow, missing, here))
        .and_then(BpfProgram::try_from);
    let filter = filter.unwrap_or_else(|error| panic!("cannot create the seccomp filter: {error}"));
    // The filter applies to this thread and the processes it starts.
    let ran = std::thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            seccompiler::apply_filter(&filter)
                .unwrap_or_else(|error| panic!("cannot apply the seccomp filter: {error}"));
            process::run(command, stdin, GUARD)
        });
        filtered.join()
    });
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
