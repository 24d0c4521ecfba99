//! Callers that stop reading stdout: the CLI after Ctrl-C, or a Director that was killed.

use crate::Call;
use crate::process::{GUARD, contains};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{PipeWriter, Read, Write};
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often the condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// When the caller closes its end of stdout.
pub enum Leaves<'a> {
    /// As soon as stderr contains the text.
    AtLine(&'a str),
    /// As soon as the condition is true.
    When(&'a dyn Fn() -> bool),
    /// After it has read so many bytes of the response.
    AfterBytes(usize),
    /// When the process has ended.
    AfterExit,
}

/// What is left of a call whose caller left.
#[derive(Debug)]
pub struct Abandoned {
    pub stderr: String,
    pub code: Option<i32>,
}

/// Stdout before the call writes to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    Empty,
    /// The pipe takes no further byte, so that writing the response waits.
    Full,
}

/// Runs a call whose caller leaves.
#[track_caller]
pub fn run(call: &Call<'_>, stdout: Stdout, leaves: &Leaves<'_>) -> Abandoned {
    run_within(call, stdout, leaves, GUARD)
}

/// Runs a call whose caller leaves, and which ends within this time.
#[track_caller]
pub fn run_within(call: &Call<'_>, stdout: Stdout, leaves: &Leaves<'_>, guard: Duration) -> Abandoned {
    let (mut reader, writer) = std::io::pipe().unwrap_or_else(|error| panic!("no pipe: {error}"));
    if stdout == Stdout::Full {
        fill(&writer);
    }
    let mut command = call.command();
    command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // The command holds the pipe's other end as well.
    drop(command);
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(call.request().as_bytes()));
    assert!(written.is_some_and(|written| written.is_ok()), "the request was not read");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut stderr = child.stderr.take().unwrap_or_else(|| unreachable!("it is piped"));
    let reading = std::thread::spawn({
        let seen = Arc::clone(&seen);
        move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                lock(&seen).extend_from_slice(&chunk[..count]);
            }
        }
    });
    let pid = Pid::from_child(&child);
    let (ended, exit) = channel();
    let waiting = std::thread::spawn(move || {
        let status = child.wait();
        let _ = ended.send(());
        status
    });
    let until = Instant::now() + guard;
    let has_left = || match leaves {
        Leaves::AtLine(text) => contains(&lock(&seen), text.as_bytes()),
        Leaves::When(happened) => happened(),
        Leaves::AfterBytes(_) | Leaves::AfterExit => false,
    };
    let mut reader = match leaves {
        Leaves::AfterBytes(count) => {
            let _ = reader.read_exact(&mut vec![0; *count]);
            drop(reader);
            None
        }
        _ => Some(reader),
    };
    while exit.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if reader.is_some() && has_left() {
            reader = None;
        }
        if Instant::now() >= until {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waiting.join();
            panic!("the call did not end within {guard:?}\nstderr: {}", String::from_utf8_lossy(&lock(&seen)));
        }
    }
    assert_eq!(reader.is_some(), matches!(leaves, Leaves::AfterExit), "the call ended before its caller left");
    let status = waiting.join().unwrap_or_else(|_| panic!("the thread that waits panicked"));
    let _ = reading.join();
    let stderr = String::from_utf8_lossy(&lock(&seen)).into_owned();
    Abandoned { stderr, code: status.ok().and_then(|status| status.code()) }
}

/// Writes to the pipe until it takes no further byte.
fn fill(writer: &PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let flags = fcntl_getfl(writer).unwrap_or_else(|error| panic!("flags of a pipe: {error}"));
    let set = |flags| fcntl_setfl(writer, flags).unwrap_or_else(|error| panic!("flags of a pipe: {error}"));
    set(flags | OFlags::NONBLOCK);
    let mut writing = writer;
    while Write::write(&mut writing, &[b' '; 4096]).is_ok() {}
    set(flags);
}

fn lock(seen: &Mutex<Vec<u8>>) -> std::sync::MutexGuard<'_, Vec<u8>> {
    seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
