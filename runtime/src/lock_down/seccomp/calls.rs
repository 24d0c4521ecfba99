//! The system calls, with their arguments, that a locked-down process may use.
//!
//! The list was collected by observing all tests of this repository. It has no `open` of any kind,
//! no `stat` by path, no `exec` and no `ioctl`; a change that adds one gives a reason. What remains
//! is waiting, memory, threads and the use of open descriptors.

use libc::c_long;
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{Eq, Le, MaskedEq};
use seccompiler::{BackendError, SeccompCmpOp, SeccompCondition, SeccompRule};
use std::collections::BTreeMap;

/// The decision on one system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SyscallVerdict {
    Allow,
    /// Allowed if one of these rules matches, otherwise EPERM.
    If(Vec<SeccompRule>),
    /// ENOSYS, which makes libc use the older system call.
    Unimplemented,
}

pub(super) struct SyscallRules(BTreeMap<u32, SyscallVerdict>);

type Result<T> = std::result::Result<T, BackendError>;

impl SyscallRules {
    pub(super) fn new() -> SyscallRules {
        SyscallRules(BTreeMap::new())
    }

    pub(super) fn sorted(self) -> Vec<(u32, SyscallVerdict)> {
        self.0.into_iter().collect()
    }

    fn add(&mut self, call: c_long, verdict: SyscallVerdict) {
        // Numbers of system calls are small and positive.
        if let Ok(number) = u32::try_from(call) {
            self.0.insert(number, verdict);
        }
    }

    fn allow(&mut self, calls: &[c_long]) {
        for call in calls {
            self.add(*call, SyscallVerdict::Allow);
        }
    }

    /// Allows the call if its arguments meet all conditions of one of these sets. A condition holds
    /// the position of its argument.
    fn allow_if(&mut self, call: c_long, any: &[&[(u8, SeccompCmpOp, u32)]]) -> Result<()> {
        let condition = |(position, operator, value): &(u8, SeccompCmpOp, u32)| {
            SeccompCondition::new(*position, Dword, operator.clone(), u64::from(*value))
        };
        let rule = |all: &&[(u8, SeccompCmpOp, u32)]| {
            SeccompRule::new(all.iter().map(condition).collect::<Result<Vec<SeccompCondition>>>()?)
        };
        let rules = any.iter().map(rule).collect::<Result<Vec<SeccompRule>>>()?;
        self.add(call, SyscallVerdict::If(rules));
        Ok(())
    }
}

/// Allows what a call needs that keeps tokens in open files.
pub(super) fn allow_token_files(rules: &mut SyscallRules) {
    rules.allow(&[libc::SYS_flock, libc::SYS_pwrite64]);
}

/// Allows what every locked-down process needs.
pub(super) fn allow_basics(rules: &mut SyscallRules, own_pid: u32) -> Result<()> {
    // Open descriptors: pipes of the caller, the audit log, the image, preopened files.
    rules.allow(&[libc::SYS_read, libc::SYS_write, libc::SYS_writev, libc::SYS_pread64]);
    rules.allow(&[libc::SYS_fstat, libc::SYS_close]);
    // Memory.
    rules.allow(&[libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_brk]);
    // The initial memory of a guest may be an anonymous file.
    rules.allow(&[libc::SYS_memfd_create]);
    // Signals, mainly for the engine's traps.
    rules.allow(&[libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_sigaltstack]);
    // Time, and waiting for it.
    rules.allow(&[
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_restart_syscall,
        libc::SYS_futex,
        libc::SYS_sched_yield,
    ]);
    rules.allow(&[libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_eventfd2]);
    #[cfg(target_arch = "x86_64")]
    rules.allow(&[libc::SYS_epoll_wait]);
    // Starting and ending threads.
    rules.allow(&[
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_sched_getaffinity,
        libc::SYS_gettid,
        libc::SYS_getpid,
        // Compared with the owners of files.
        libc::SYS_geteuid,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ]);
    rules.allow(&[libc::SYS_getrandom]);

    let no_code: &[&[_]] = &[&[(2, MaskedEq(u64::from(bits(libc::PROT_EXEC))), 0)]];
    rules.allow_if(libc::SYS_mmap, no_code)?;
    rules.allow_if(libc::SYS_mprotect, no_code)?;
    // A thread, not a process, and without a new namespace. `clone3` passes its flags by pointer,
    // where a filter cannot read them.
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    let thread = bits(libc::CLONE_THREAD);
    rules.allow_if(libc::SYS_clone, &[&[(0, MaskedEq(u64::from(bits(namespaces) | thread)), thread)]])?;
    rules.add(libc::SYS_clone3, SyscallVerdict::Unimplemented);
    // Names of threads, and the auxiliary vector.
    const PR_GET_AUXV: u32 = 0x4155_5856;
    rules.allow_if(libc::SYS_prctl, &[&[(0, Eq, bits(libc::PR_SET_NAME))], &[(0, Eq, PR_GET_AUXV)]])?;
    // Flags of descriptors, copies of them, and seals on memory.
    rules.allow_if(
        libc::SYS_fcntl,
        &[
            &[(1, Le, bits(libc::F_SETFL))],
            &[(1, Eq, bits(libc::F_DUPFD_CLOEXEC))],
            &[(1, Eq, bits(libc::F_ADD_SEALS))],
        ],
    )?;
    // `abort` sends a signal to its own process.
    rules.allow_if(libc::SYS_tgkill, &[&[(0, Eq, own_pid)]])
}

/// Allows TCP and UDP.
pub(super) fn allow_network(rules: &mut SyscallRules) -> Result<()> {
    // No raw sockets, and no protocol except TCP and UDP: Landlock's ports do not restrict other
    // protocols, and MPTCP reaches the same servers.
    let family = |family: i32, kind: i32| [(0, Eq, bits(family)), (1, MaskedEq(0xf), bits(kind)), (2, Le, 17)];
    let tcp = [family(libc::AF_INET, libc::SOCK_STREAM), family(libc::AF_INET6, libc::SOCK_STREAM)];
    let udp = [family(libc::AF_INET, libc::SOCK_DGRAM), family(libc::AF_INET6, libc::SOCK_DGRAM)];
    rules.allow_if(libc::SYS_socket, &[&tcp[0], &tcp[1], &udp[0], &udp[1]])?;
    // UDP sockets are bound for DNS queries; Landlock refuses to bind TCP sockets.
    rules.allow(&[libc::SYS_connect, libc::SYS_bind, libc::SYS_recvfrom, libc::SYS_shutdown]);
    rules.allow(&[libc::SYS_getsockname, libc::SYS_getpeername]);
    // Not with `MSG_FASTOPEN`, which connects without Landlock's check.
    let connected: &[&[_]] = &[&[(3, MaskedEq(u64::from(bits(libc::MSG_FASTOPEN))), 0)]];
    rules.allow_if(libc::SYS_sendto, connected)?;
    rules.allow_if(libc::SYS_getsockopt, &[&[(1, Eq, bits(libc::SOL_SOCKET)), (2, Eq, bits(libc::SO_ERROR))]])?;
    let of_tcp = (1, Eq, bits(libc::IPPROTO_TCP));
    rules.allow_if(
        libc::SYS_setsockopt,
        &[
            &[(1, Eq, bits(libc::SOL_SOCKET)), (2, Eq, bits(libc::SO_KEEPALIVE))],
            &[of_tcp.clone(), (2, Le, bits(libc::TCP_KEEPCNT))],
            &[of_tcp, (2, Eq, bits(libc::TCP_USER_TIMEOUT))],
        ],
    )
}

/// Converts a signed constant to the kernel's unsigned arguments.
fn bits(constant: i32) -> u32 {
    constant.cast_unsigned()
}
