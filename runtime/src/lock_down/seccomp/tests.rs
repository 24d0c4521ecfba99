//! Tests the filter with an interpreter of the few instructions that a filter may use.

use super::calls::{SyscallRules, SyscallVerdict, allow_basics, allow_network};
use super::*;
use libc::c_long;
use proptest::prelude::*;
use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule, sock_filter};

const THIS: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
const PID: u32 = 4711;

/// Returns what the kernel would return. Panics on an instruction that the kernel does not accept,
/// and on a jump out of the program.
fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: &[u64]) -> u32 {
    let word = |offset: u32| match offset {
        0 => number,
        4 => architecture,
        _ => {
            let (index, high) = ((offset as usize - 16) / 8, (offset / 4) % 2 == 1);
            let argument = arguments.get(index).copied().unwrap_or_default();
            (if high { argument >> 32 } else { argument }) as u32
        }
    };
    let (mut accumulator, mut at) = (0, 0);
    loop {
        let one = &program[at];
        at += 1;
        let jump = |taken: bool| usize::from(if taken { one.jt } else { one.jf });
        match one.code {
            0x20 => accumulator = word(one.k),
            0x54 => accumulator &= one.k,
            0x05 => at += one.k as usize,
            0x15 => at += jump(accumulator == one.k),
            0x25 => at += jump(accumulator > one.k),
            0x35 => at += jump(accumulator >= one.k),
            0x06 => return one.k,
            other => panic!("{other:#x} is not an instruction of a filter"),
        }
    }
}

fn filter(network: &Network) -> BpfProgram {
    program(THIS, network, Writes::Nothing, PID).unwrap()
}

fn of(call: c_long, arguments: &[u64]) -> (u32, Vec<u64>) {
    (u32::try_from(call).unwrap(), arguments.to_vec())
}

const READ_WRITE: u64 = 3;
const EXEC: u64 = 4;
const STREAM: u64 = 1 | 0o2_000_000;

#[test]
fn files_are_locked_and_overwritten_only_where_tokens_are_kept() {
    let with_tokens = program(THIS, &Network::to([443]), Writes::Tokens, PID).unwrap();
    for call in [libc::SYS_flock, libc::SYS_pwrite64] {
        let (number, arguments) = of(call, &[3]);
        assert_eq!(run(&with_tokens, THIS, number, &arguments), ALLOW, "{number}");
        assert_eq!(run(&filter(&Network::to([443])), THIS, number, &arguments), EPERM, "{number}");
    }
}

#[test]
fn system_calls_of_a_call_are_allowed() {
    let program = filter(&Network::to([443]));
    for (number, arguments) in [
        of(libc::SYS_read, &[0]),
        of(libc::SYS_mmap, &[0, 4096, READ_WRITE, 0x22]),
        of(libc::SYS_mprotect, &[0, 4096, 0]),
        of(libc::SYS_clone, &[0x003d_0f00]),
        of(libc::SYS_prctl, &[15]),
        of(libc::SYS_fcntl, &[3, 1030, 3]),
        of(libc::SYS_tgkill, &[u64::from(PID), 1, 6]),
        of(libc::SYS_socket, &[2, STREAM, 6]),
        of(libc::SYS_socket, &[10, STREAM | 0o4000, 0]),
        of(libc::SYS_socket, &[2, 2 | 0o2_000_000, 17]),
        of(libc::SYS_sendto, &[3, 0, 0, 0x4000]),
        of(libc::SYS_setsockopt, &[3, 6, 1]),
        of(libc::SYS_exit_group, &[0]),
    ] {
        assert_eq!(run(&program, THIS, number, &arguments), ALLOW, "{number} {arguments:?}");
    }
}

#[test]
fn system_calls_of_an_attacker_are_refused() {
    let program = filter(&Network::to([443]));
    for (number, arguments) in [
        of(libc::SYS_execve, &[]),
        of(libc::SYS_execveat, &[]),
        of(libc::SYS_openat, &[]),
        of(libc::SYS_openat2, &[]),
        of(libc::SYS_open_by_handle_at, &[]),
        of(libc::SYS_newfstatat, &[]),
        of(libc::SYS_statx, &[]),
        of(libc::SYS_getdents64, &[]),
        of(libc::SYS_unlinkat, &[]),
        of(libc::SYS_mmap, &[0, 4096, READ_WRITE | EXEC, 0x22]),
        of(libc::SYS_mprotect, &[0, 4096, 1 | EXEC]),
        of(libc::SYS_mprotect, &[0, 4096, EXEC | 1 << 40]),
        of(libc::SYS_pkey_mprotect, &[0, 4096, EXEC]),
        of(libc::SYS_personality, &[0x0040_0000]),
        // fork, vfork, a thread in a namespace of its own
        of(libc::SYS_clone, &[17]),
        of(libc::SYS_clone, &[0x4111]),
        of(libc::SYS_clone, &[0x003d_0f00 | 0x1000_0000]),
        of(libc::SYS_unshare, &[]),
        of(libc::SYS_ptrace, &[]),
        of(libc::SYS_process_vm_writev, &[]),
        of(libc::SYS_pidfd_getfd, &[]),
        of(libc::SYS_kill, &[1, 9]),
        of(libc::SYS_tgkill, &[1, 1, 9]),
        of(libc::SYS_tkill, &[1, 9]),
        of(libc::SYS_io_uring_setup, &[]),
        of(libc::SYS_bpf, &[]),
        of(libc::SYS_mount, &[]),
        of(libc::SYS_setuid, &[]),
        of(libc::SYS_setresuid, &[]),
        of(libc::SYS_ioctl, &[0, 0x5412]),
        of(libc::SYS_prctl, &[22]),
        of(libc::SYS_fcntl, &[3, 8, 1]),
        of(libc::SYS_seccomp, &[]),
        of(libc::SYS_landlock_create_ruleset, &[]),
        of(libc::SYS_userfaultfd, &[]),
        of(libc::SYS_perf_event_open, &[]),
        of(libc::SYS_keyctl, &[]),
        of(libc::SYS_prlimit64, &[]),
        // UNIX, netlink, packet; raw; MPTCP, SCTP, ICMP beyond a ping
        of(libc::SYS_socket, &[1, STREAM, 0]),
        of(libc::SYS_socket, &[16, 3, 0]),
        of(libc::SYS_socket, &[17, 3, 0]),
        of(libc::SYS_socket, &[2, 3, 6]),
        of(libc::SYS_socket, &[2, STREAM, 262]),
        of(libc::SYS_socket, &[2, STREAM, 132]),
        of(libc::SYS_socketpair, &[1, STREAM, 0]),
        of(libc::SYS_listen, &[]),
        of(libc::SYS_accept4, &[]),
        of(libc::SYS_sendto, &[3, 0, 0, 0x2000_0000]),
        of(libc::SYS_sendmsg, &[]),
        of(libc::SYS_sendmmsg, &[]),
        of(libc::SYS_setsockopt, &[3, 6, 30]),
        of(libc::SYS_setsockopt, &[3, 1, 26]),
        of(0x4000_0000, &[]),
        of(0x7fff_ffff, &[]),
    ] {
        assert_eq!(run(&program, THIS, number, &arguments), EPERM, "{number} {arguments:?}");
    }
}

#[test]
fn clone3_is_reported_as_missing_so_that_libc_uses_clone() {
    let number = u32::try_from(libc::SYS_clone3).unwrap();
    assert_eq!(run(&filter(&Network::None), THIS, number, &[]), ENOSYS);
}

#[test]
fn without_a_grant_no_socket_call_is_allowed() {
    let (with, without) = (filter(&Network::to([443])), filter(&Network::None));
    let allowed = |program: &[sock_filter]| {
        (0..600).filter(|number| run(program, THIS, *number, &[2, STREAM, 0]) != EPERM).collect::<Vec<u32>>()
    };
    let mut rules = SyscallRules::new();
    allow_network(&mut rules).unwrap();
    for (number, _) in rules.sorted() {
        assert_eq!(run(&without, THIS, number, &[2, STREAM, 0]), EPERM, "{number}");
    }
    assert!(allowed(&without).iter().all(|number| allowed(&with).contains(number)));
}

#[test]
fn system_calls_of_another_architecture_are_refused() {
    let number = u32::try_from(libc::SYS_read).unwrap();
    assert_eq!(run(&filter(&Network::None), 0x4000_0003, number, &[]), EPERM);
}

#[test]
fn the_filter_is_short_enough_for_the_kernel() {
    let program = filter(&Network::to([443]));
    assert!(program.len() < 400, "{}", program.len());
}

/// Returns the decision of the table, without a program.
fn expected(rules: &[(u32, SyscallVerdict)], number: u32, first: u32) -> u32 {
    match rules.iter().find(|(known, _)| *known == number) {
        None => EPERM,
        Some((_, SyscallVerdict::Allow)) => ALLOW,
        Some((_, SyscallVerdict::Unimplemented)) => ENOSYS,
        // The rules below have one condition: the first argument is 7.
        Some((_, SyscallVerdict::If(rules))) => {
            if first == 7 && !rules.is_empty() {
                ALLOW
            } else {
                EPERM
            }
        }
    }
}

proptest! {
    #[test]
    fn the_tree_decides_as_the_table_does(
        table in prop::collection::btree_map(0_u32..120, 0_usize..70, 0..90), first in 5_u32..9
    ) {
        let sevens = |count: usize| {
            let seven = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 7).unwrap();
            vec![SeccompRule::new(vec![seven]).unwrap(); count]
        };
        let rules: Vec<(u32, SyscallVerdict)> = table.into_iter().map(|(number, kind)| (number, match kind {
            0..30 => SyscallVerdict::Allow,
            30..40 => SyscallVerdict::Unimplemented,
            more => SyscallVerdict::If(sevens(more - 40)),
        })).collect();
        let program = tree::program(THIS, rules.clone());
        for number in 0..125 {
            prop_assert_eq!(run(&program, THIS, number, &[u64::from(first)]), expected(&rules, number, first));
        }
    }
}

#[test]
fn every_rule_has_a_system_call_number() {
    let mut rules = SyscallRules::new();
    allow_basics(&mut rules, PID).unwrap();
    let numbers: Vec<u32> = rules.sorted().into_iter().map(|(number, _)| number).collect();
    assert!(numbers.len() > 30 && numbers.iter().all(|number| *number < 600), "{numbers:?}");
}
