//! Runs a program as the Director does: all of stdin is written before any output is
//! read. A program that would deadlock with the Director also deadlocks here, and
//! is killed when the guard time ends.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The output and exit status of a program.
pub struct Finished {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub status: ExitStatus,
    /// The result of writing all of stdin.
    pub stdin_written: std::io::Result<()>,
}

/// A signal to send as soon as stderr contains a text, without a race or a sleep.
#[derive(Clone)]
pub struct SignalAt {
    pub text: String,
    pub signal: Signal,
}

/// A signal to send as soon as a condition outside the program is true.
#[derive(Clone)]
pub struct SignalWhen {
    pub happened: Arc<dyn Fn() -> bool + Send + Sync>,
    pub signal: Signal,
}

/// How often the condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time after which a program counts as hung and fails its test. No call should
/// take this long.
pub const GUARD: Duration = Duration::from_secs(60);

pub fn run(command: &mut Command, stdin: &[u8], guard: Duration) -> Finished {
    run_with_signals(command, stdin, guard, Vec::new(), None)
}

pub fn run_with_signals(
    command: &mut Command,
    stdin: &[u8],
    guard: Duration,
    signals: Vec<SignalAt>,
    when: Option<SignalWhen>,
) -> Finished {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let pid = Pid::from_child(&child);
    let (done, watched) = channel::<()>();
    let hung = Arc::new(AtomicBool::new(false));
    let watchdog = std::thread::spawn({
        let hung = Arc::clone(&hung);
        move || {
            let until = Instant::now() + guard;
            if let Some(when) = when {
                while watched.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) && Instant::now() < until {
                    if (when.happened)() {
                        let _ = kill_process(pid, when.signal);
                        break;
                    }
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if watched.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                hung.store(true, Ordering::SeqCst);
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    });
    let (mut to, mut out, err) = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(to), Some(out), Some(err)) => (to, out, err),
        _ => unreachable!("all three are piped"),
    };
    let stdin_written = to.write_all(stdin);
    drop(to);
    let stderr = std::thread::spawn(move || read_and_signal(err, pid, signals));
    let mut stdout = Vec::new();
    let _ = out.read_to_end(&mut stdout);
    let stderr = stderr.join().unwrap_or_default();
    let status = child.wait().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    drop(done);
    let _ = watchdog.join();
    assert!(
        !hung.load(Ordering::SeqCst),
        "{command:?} did not end within {guard:?}\nstdout: {}\nstderr: {}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    );
    Finished { stdout, stderr, status, stdin_written }
}

/// Writes to stdin without ever closing it. Returns the response, or `None` if the program still
/// runs after the guard time.
pub fn run_with_open_stdin(command: &mut Command, stdin: &[u8], guard: Duration) -> Option<serde_json::Value> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let mut to = child.stdin.take().unwrap_or_else(|| unreachable!("it is piped"));
    to.write_all(stdin).unwrap_or_else(|error| panic!("{command:?} does not read: {error}"));
    let until = Instant::now() + guard;
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", output.status);
    let response = serde_json::from_slice(&output.stdout);
    Some(response.unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

/// Reads the stream to its end and sends each signal when its text has appeared.
fn read_and_signal(mut stream: impl Read, pid: Pid, signals: Vec<SignalAt>) -> Vec<u8> {
    let mut read = Vec::new();
    let mut waiting = signals.into_iter().peekable();
    let mut chunk = [0; 64 * 1024];
    loop {
        while let Some(next) = waiting.next_if(|next| contains(&read, next.text.as_bytes())) {
            let _ = kill_process(pid, next.signal);
        }
        match stream.read(&mut chunk) {
            Ok(0) => return read,
            Ok(count) => read.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return read,
        }
    }
}

pub fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
