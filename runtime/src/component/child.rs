//! The compiling child, seen from the parent.
//!
//! Compiling a stranger's module is where wasmtime promises nothing about time
//! and memory, and describing it runs its code. Both happen in a process of
//! their own: `wasm-cpi compile-guest`, with limits, without privileges,
//! environment or files. It gets the bytes on stdin and answers in frames; the
//! artifact's frame, and that of what the file declares, are complete before any
//! code of the guest has run.

use crate::component::description::{Described, Description};
use crate::failure::Failure;
use crate::hardening::Hardening;
use crate::limits::Limits;
use crate::signals;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;

/// The hidden subcommand of the tool.
pub const SUBCOMMAND: &str = "compile-guest";

/// A frame's kind: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    Surface = b'S' as isize,
    Artifact = b'A' as isize,
    Description = b'D' as isize,
    Error = b'E' as isize,
}

/// A failure on its way through the pipe.
#[derive(Serialize, Deserialize)]
pub struct Refusal {
    /// The guest is at fault rather than its file.
    pub guest: bool,
    pub message: String,
    pub detail: String,
}

pub struct Compiled {
    pub artifact: Vec<u8>,
    pub description: Description,
}

/// Compiled code is a few times the size of wasm.
const ARTIFACT_FACTOR: u64 = 20;
const ARTIFACT_MIN: u64 = 64 << 20;
const DESCRIPTION_MAX: u64 = 1 << 20;

pub fn compile(wasm: Vec<u8>, limits: &Limits, hardening: Hardening) -> Result<Compiled, Failure> {
    let tool = tool()?;
    let artifact_max = (wasm.len() as u64 * ARTIFACT_FACTOR).max(ARTIFACT_MIN);
    #[expect(clippy::disallowed_methods, reason = "the one child there is; nothing of ours reaches it but its pipes")]
    let mut command = Command::new(&tool);
    if Check::ChildEnvironment.on() {
        command.env_clear();
    }
    command
        .arg(SUBCOMMAND)
        .args([limits.compile_mib, limits.compile_seconds, limits.memory_mib].map(|limit| limit.to_string()))
        .arg(hardening.to_string())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Nothing of ours may outlive us on the Director's pipes.
        .stderr(Stdio::null());
    #[cfg(feature = "holes")]
    command.env(wasm_cpi_checks::VARIABLE, wasm_cpi_checks::switched_off());
    #[cfg(feature = "holes")]
    crate::hardening::hook::hand_on(&mut command);
    let mut child = command.spawn().map_err(|error| {
        Failure::config(format!("{}: cannot be started to compile the guest ({error})", tool.display()))
    })?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failure::runtime("the compiling child has no pipes"));
    };
    let (finished, done) = channel::<()>();
    let pid = Pid::from_child(&child);
    let seconds = limits.compile_seconds;
    let watchdog = std::thread::spawn(move || {
        let why = watch(&done, Duration::from_secs(seconds))?;
        let _ = kill_process(pid, Signal::KILL);
        Some(why)
    });
    // A child that refuses early closes its end; its frame says why.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&wasm)));
    let answer = read_answer(&mut stdout, artifact_max);
    drop(finished);
    let stopped = watchdog.join().unwrap_or(None);
    drop(stdout);
    let _ = kill_process(pid, Signal::KILL);
    let _ = child.wait();
    let _ = writer.join();
    match answer {
        Ok(compiled) => Ok(compiled),
        Err(AnswerError::Refused(failure)) => Err(failure),
        Err(error) => match stopped {
            Some(Stopped::Late) => Err(Failure::limit("compile_seconds", seconds, "compiling the guest")),
            Some(Stopped::Signal(name)) => {
                Err(Failure::runtime(format!("{name} ended the call while the guest was compiled")))
            }
            None => {
                let what = "compiling the guest failed and most likely";
                Err(Failure::limit("compile_mib", limits.compile_mib, what).with_detail(error.to_string()))
            }
        },
    }
}

/// Why the child's answer is not a compiled guest.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error(transparent)]
    Refused(Failure),
    #[error("the compiling child ended without an answer")]
    Absent(#[source] io::Error),
    #[error("{0}")]
    Malformed(String),
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Why the child was stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Late,
    Signal(&'static str),
}

/// Waits until the answer is there, or for a reason to wait no longer.
fn watch(done: &Receiver<()>, limit: Duration) -> Option<Stopped> {
    let deadline = Instant::now() + limit;
    while done.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
        if Instant::now() >= deadline {
            return Some(Stopped::Late);
        }
        if let Some(name) = signals::arrived() {
            return Some(Stopped::Signal(name));
        }
    }
    None
}

/// The tool lies beside this program, or is this program.
fn tool() -> Result<std::path::PathBuf, Failure> {
    let here =
        std::env::current_exe().map_err(|error| Failure::runtime(format!("cannot find this program: {error}")))?;
    let tool = here.with_file_name("wasm-cpi");
    if tool.is_file() {
        return Ok(tool);
    }
    Err(Failure::config(format!(
        "{}: not there, but needed to prepare the guest; install it beside {}",
        tool.display(),
        here.display()
    )))
}

fn read_answer(stdout: &mut ChildStdout, artifact_max: u64) -> Result<Compiled, AnswerError> {
    let mut expect = |expected: Frame, max: u64| match read_frame(stdout, max)? {
        (frame, bytes) if frame == expected => Ok(bytes),
        (Frame::Error, refusal) => Err(AnswerError::Refused(refused(&refusal)?)),
        _ => Err(AnswerError::Malformed("frames out of order".into())),
    };
    let declared = expect(Frame::Surface, DESCRIPTION_MAX)?;
    let artifact = expect(Frame::Artifact, artifact_max)?;
    let described: Described = serde_json::from_slice(&expect(Frame::Description, DESCRIPTION_MAX)?)?;
    // Its code has run in the process that sent this, which may not be what it was.
    described.check().map_err(AnswerError::Malformed)?;
    let description = described.with(serde_json::from_slice(&declared)?);
    Ok(Compiled { artifact, description })
}

fn refused(frame: &[u8]) -> Result<Failure, serde_json::Error> {
    let refusal: Refusal = serde_json::from_slice(frame)?;
    let failure = if refusal.guest { Failure::guest(refusal.message) } else { Failure::config(refusal.message) };
    Ok(failure.with_detail(refusal.detail))
}

fn read_frame(stdout: &mut ChildStdout, max: u64) -> Result<(Frame, Vec<u8>), AnswerError> {
    let mut head = [0; 9];
    stdout.read_exact(&mut head).map_err(AnswerError::Absent)?;
    let kind = match head[0] {
        b'S' => Frame::Surface,
        b'A' => Frame::Artifact,
        b'D' => Frame::Description,
        b'E' => Frame::Error,
        _ => return Err(AnswerError::Malformed("the compiling child answered garbage".into())),
    };
    let length = u64::from_le_bytes([head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8]]);
    if length > max {
        return Err(AnswerError::Malformed(format!("the compiling child answered {length} bytes")));
    }
    let mut bytes = Vec::new();
    if stdout.take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(AnswerError::Malformed("the compiling child ended in the middle of an answer".into()));
    }
    Ok((kind, bytes))
}

/// The child's side of the pipe.
#[cfg(feature = "compiler")]
pub fn write_frame(out: &mut impl Write, kind: Frame, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[kind as u8])?;
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)?;
    out.flush()
}
