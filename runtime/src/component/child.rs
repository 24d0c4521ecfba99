//! The parent's side of the compiling child.
//!
//! wasmtime does not bound the time and memory of a compilation, and `describe` runs code of the
//! guest. Both happen in a child process, `wasm-cpi compile-guest`, with limits and without
//! privileges, environment or files. The child gets the bytes on stdin and answers in frames. The
//! frames of the artifact and of what the file declares are complete before any code of the guest
//! runs.

use crate::caller;
use crate::component::description::{Described, GuestDescription};
use crate::failure::{Failure, Who};
use crate::limits::Limits;
use crate::lock_down::LockDownLevel;
use crate::signals;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;

/// The hidden subcommand of the tool that compiles.
pub const SUBCOMMAND: &str = "compile-guest";

/// The kind of a frame, which is its first byte: S for what the file itself declares, A for the
/// artifact, D for what `describe` returned, and E for the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    Declared = b'S' as isize,
    Artifact = b'A' as isize,
    Description = b'D' as isize,
    Error = b'E' as isize,
}

impl Frame {
    fn from_byte(byte: u8) -> Option<Frame> {
        [Frame::Declared, Frame::Artifact, Frame::Description, Frame::Error]
            .into_iter()
            .find(|frame| *frame as u8 == byte)
    }
}

/// A failure as the pipe carries it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ChildFailure {
    pub who: Who,
    pub message: String,
    pub detail: String,
    /// The code of the check that refused, if one did.
    pub code: Option<String>,
}

impl From<Failure> for ChildFailure {
    fn from(failure: Failure) -> ChildFailure {
        let Failure { who, message, detail, check } = failure;
        ChildFailure { who, message, detail, code: check.map(|check| check.to_string()) }
    }
}

/// The result of a compilation.
pub struct Compiled {
    pub artifact: Vec<u8>,
    pub description: GuestDescription,
}

/// The largest artifact, as a multiple of the size of the wasm. Compiled code is a few times larger.
const ARTIFACT_FACTOR: u64 = 20;
const ARTIFACT_MIN: u64 = 64 << 20;
const DESCRIPTION_MAX: u64 = 1 << 20;

/// Compiles a guest in a child process and runs its `describe` there.
pub fn compile_in_child(wasm: Vec<u8>, limits: &Limits, hardening: LockDownLevel) -> Result<Compiled, Failure> {
    let tool = tool()?;
    let artifact_max = (wasm.len() as u64 * ARTIFACT_FACTOR).max(ARTIFACT_MIN);
    #[expect(clippy::disallowed_methods, reason = "the only child process; it inherits nothing except its pipes")]
    let mut command = Command::new(&tool);
    Check::ChildEnvironment.perform(|| {
        command.env_clear();
    });
    let for_child = serde_json::to_string(limits).map_err(|error| Failure::runtime(error.to_string()))?;
    command
        .args([SUBCOMMAND, &for_child, &hardening.to_string()])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // The child must not keep the Director's pipe open after this process ends.
        .stderr(Stdio::null());
    #[cfg(feature = "mutation-testing")]
    command.env(wasm_cpi_checks::VARIABLE, wasm_cpi_checks::mutant());
    #[cfg(feature = "mutation-testing")]
    crate::lock_down::hook::pass_to_child(&mut command);
    let mut child = command.spawn().map_err(|error| {
        Failure::config(format!(
            "{} cannot be started to compile the guest ({error}); check that this user may execute it",
            tool.display()
        ))
    })?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failure::runtime("the compiling child has no pipes; this is a bug in wasm-cpi, please report it"));
    };
    let (finished, done) = channel::<()>();
    let pid = Pid::from_child(&child);
    let seconds = limits.compile_seconds;
    let watchdog = std::thread::spawn(move || {
        let why = wait_for_answer(&done, Duration::from_secs(seconds))?;
        let _ = kill_process(pid, Signal::KILL);
        Some(why)
    });
    // A child that refuses the guest early closes its end, and its frame has the reason.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&wasm)));
    let answer = read_answer(&mut stdout, artifact_max);
    drop(finished);
    let stopped = watchdog.join().unwrap_or(None);
    drop(stdout);
    // The child may still run after a complete answer. Killing one that has ended changes nothing,
    // and its status still says why it ended.
    let _ = kill_process(pid, Signal::KILL);
    let status = child.wait().ok();
    let _ = writer.join();
    match (answer, stopped) {
        (Ok(compiled), _) => Ok(compiled),
        (Err(AnswerError::Failed(failure)), _) => Err(failure),
        (Err(_), Some(Stopped::Late)) => Err(late(limits)),
        (Err(_), Some(Stopped::Signal(name))) => {
            Err(Failure::runtime(format!("{name} ended the call while the guest was compiled")))
        }
        (Err(_), Some(Stopped::CallerGone)) => {
            Err(Failure::runtime("the call was ended while the guest was compiled, because its caller closed stdout"))
        }
        (Err(AnswerError::Ended), None) => Err(explain_death(status, limits)),
        (Err(error), None) => {
            let what = "the process that compiles the guest sent a malformed answer; this is a bug in wasm-cpi";
            Err(Failure::runtime(format!("{what}, please report it")).with_detail(error.to_string()))
        }
    }
}

fn late(limits: &Limits) -> Failure {
    Failure::limit("compile_seconds", limits.compile_seconds, "compiling the guest")
}

/// Returns the failure of a child that died without an answer. A panic and a limit that the child
/// notices are answers.
fn explain_death(status: Option<ExitStatus>, limits: &Limits) -> Failure {
    let signal = status.and_then(|status| status.signal()).and_then(Signal::from_named_raw);
    match signal {
        // Rust aborts a program that gets no memory.
        Some(Signal::ABORT) => {
            let what = "compiling the guest failed, most likely because it";
            Failure::limit("compile_mib", limits.compile_mib, what)
        }
        // The kernel's limit of CPU time, which counts all threads.
        Some(Signal::XCPU) => late(limits),
        Some(Signal::KILL) => Failure::runtime(
            "the process that compiles the guest was killed, most likely because this machine has too little memory; \
             give it more, or prepare the guest while less is running",
        ),
        _ => {
            let how = status.map_or_else(|| "without a status".to_owned(), |status| format!("with {status}"));
            Failure::runtime(format!(
                "the process that compiles the guest ended {how} and without an answer; install wasm-cpi and \
                 wasm-cpi-run from one release, and if they are, report this with the guest as a bug in wasm-cpi"
            ))
        }
    }
}

/// The reason why the child's answer is not a compiled guest.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error(transparent)]
    Failed(Failure),
    #[error("the compiling child ended without an answer")]
    Ended,
    #[error("{0}")]
    Malformed(String),
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The reason why the child was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Late,
    Signal(&'static str),
    CallerGone,
}

/// Waits for the answer. Returns why the child must be stopped, if it must.
fn wait_for_answer(done: &Receiver<()>, limit: Duration) -> Option<Stopped> {
    let deadline = Instant::now() + limit;
    while done.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
        if Instant::now() >= deadline {
            return Some(Stopped::Late);
        }
        if let Some(name) = signals::arrived() {
            return Some(Stopped::Signal(name));
        }
        if caller::is_gone() {
            return Some(Stopped::CallerGone);
        }
    }
    None
}

/// Returns the path of the tool, which is beside this program or is this program.
fn tool() -> Result<std::path::PathBuf, Failure> {
    let here =
        std::env::current_exe().map_err(|error| Failure::runtime(format!("cannot find this program: {error}")))?;
    let tool = here.with_file_name("wasm-cpi");
    if tool.is_file() {
        return Ok(tool);
    }
    Err(Failure::config(format!(
        "{} does not exist, but is needed to prepare the guest; install it beside {}",
        tool.display(),
        here.display()
    )))
}

fn read_answer(stdout: &mut ChildStdout, artifact_max: u64) -> Result<Compiled, AnswerError> {
    let mut expect = |expected: Frame, max: u64| match read_frame(stdout, max)? {
        (frame, bytes) if frame == expected => Ok(bytes),
        (Frame::Error, failure) => Err(AnswerError::Failed(parse_failure(&failure)?)),
        _ => Err(AnswerError::Malformed("the compiling child sent frames in the wrong order".into())),
    };
    let declared = expect(Frame::Declared, DESCRIPTION_MAX)?;
    let artifact = expect(Frame::Artifact, artifact_max)?;
    let described: Described = serde_json::from_slice(&expect(Frame::Description, DESCRIPTION_MAX)?)?;
    // The guest's code ran in the process that sent this, so the child's own check does not count.
    described.check().map_err(|problem| AnswerError::Malformed(problem.text))?;
    let description = described.with(serde_json::from_slice(&declared)?);
    Ok(Compiled { artifact, description })
}

fn parse_failure(frame: &[u8]) -> Result<Failure, serde_json::Error> {
    let failure: ChildFailure = serde_json::from_slice(frame)?;
    let check = failure.code.as_deref().and_then(Check::find);
    Ok(Failure { check, ..Failure::new(failure.who, failure.message).with_detail(failure.detail) })
}

fn read_frame(stdout: &mut ChildStdout, max: u64) -> Result<(Frame, Vec<u8>), AnswerError> {
    let mut head = [0; 9];
    stdout.read_exact(&mut head).map_err(|_| AnswerError::Ended)?;
    let kind = Frame::from_byte(head[0])
        .ok_or_else(|| AnswerError::Malformed("the compiling child sent a frame of an unknown kind".into()))?;
    let length = u64::from_le_bytes([head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8]]);
    if Check::ChildAnswer.refuses(length > max) {
        return Err(AnswerError::Malformed(format!(
            "the compiling child announced a frame of {length} bytes, which is more than the {max} that are allowed"
        )));
    }
    let mut bytes = Vec::new();
    if stdout.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(AnswerError::Ended);
    }
    Ok((kind, bytes))
}

/// Writes a frame; the child calls this.
#[cfg(feature = "compiler")]
pub fn write_frame(out: &mut impl Write, kind: Frame, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[kind as u8])?;
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)?;
    out.flush()
}
