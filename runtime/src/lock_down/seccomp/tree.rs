//! Compiles the decisions on system calls to a program for the kernel: a search tree over their
//! numbers.
//!
//! The kernel runs a new filter once for every number of a system call. With a list, as
//! `seccompiler` writes it, this takes a tenth of a call; with a tree it takes almost no time.
//! Conditions on arguments are still compiled by `seccompiler`.

use super::calls::SyscallVerdict;
use libc::{BPF_ABS, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
use seccompiler::{BpfProgram, SeccompAction, sock_filter};

/// The offsets of number and architecture in the kernel's description of a system call.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// The numbers from `from` up to the start of the next span.
struct Span {
    from: u32,
    verdict: Option<SyscallVerdict>,
}

/// Returns the program. `rules` are sorted by number, each at most once. Other numbers, and all
/// numbers of another architecture, get EPERM.
pub(super) fn program(architecture: u32, rules: Vec<(u32, SyscallVerdict)>) -> BpfProgram {
    let mut program = vec![
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, ARCHITECTURE),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, architecture),
        refuse(libc::EPERM),
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, NUMBER),
    ];
    tree(&spans(rules), &mut program);
    program
}

/// Returns spans without gaps. Neighbours with the same unconditional verdict are joined.
fn spans(rules: Vec<(u32, SyscallVerdict)>) -> Vec<Span> {
    let mut spans = vec![Span { from: 0, verdict: None }];
    for (number, verdict) in rules {
        match spans.last_mut() {
            // There is no gap before this number.
            Some(last) if last.from == number => last.verdict = Some(verdict),
            _ => spans.push(Span { from: number, verdict: Some(verdict) }),
        }
        spans.push(Span { from: number + 1, verdict: None });
    }
    let joined =
        |a: &mut Span, b: &mut Span| a.verdict == b.verdict && !matches!(a.verdict, Some(SyscallVerdict::If(_)));
    spans.dedup_by(|later, earlier| joined(earlier, later));
    spans
}

/// Appends the tree: a jump over its first half, and both halves.
fn tree(spans: &[Span], program: &mut BpfProgram) {
    let (before, after) = match spans {
        [] => return program.push(refuse(libc::EPERM)),
        [one] => return leaf(one.verdict.as_ref(), program),
        _ => spans.split_at(spans.len() / 2),
    };
    let (jump, at) = (program.len(), after.first().map_or(u32::MAX, |span| span.from));
    program.push(instruction(BPF_JMP | BPF_JGE | BPF_K, 0, 0, at));
    tree(before, program);
    let length = program.len() - jump - 1;
    match u8::try_from(length) {
        Ok(length) => program[jump].jt = length,
        // A conditional jump is limited to 255 instructions, an unconditional one is not.
        Err(_) => {
            program[jump].jf = 1;
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            program.insert(jump + 1, instruction(BPF_JMP | BPF_JA, 0, 0, length));
        }
    }
    tree(after, program);
}

fn leaf(verdict: Option<&SyscallVerdict>, program: &mut BpfProgram) {
    match verdict {
        None => program.push(refuse(libc::EPERM)),
        Some(SyscallVerdict::Allow) => program.push(answer(SeccompAction::Allow)),
        Some(SyscallVerdict::Unimplemented) => program.push(refuse(libc::ENOSYS)),
        Some(SyscallVerdict::If(rules)) => {
            for rule in rules {
                // A rule that does not match continues after the `Allow`.
                program.extend(BpfProgram::from(rule.clone()));
                program.push(answer(SeccompAction::Allow));
            }
            program.push(refuse(libc::EPERM));
        }
    }
}

fn refuse(errno: i32) -> sock_filter {
    answer(SeccompAction::Errno(errno.unsigned_abs()))
}

fn answer(action: SeccompAction) -> sock_filter {
    instruction(BPF_RET | BPF_K, 0, 0, action.into())
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    // Codes have 16 bits, although the constants have a wider type.
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}
