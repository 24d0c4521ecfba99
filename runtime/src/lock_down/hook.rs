//! Runs native code where the guest's code would start, for tests of the lock-down. It exists only
//! with the feature `mutation-testing`, never in a build that ships.
//!
//! `WASM_CPI_HOOK` names actions, separated by `;`. Each is attempted after the process is locked
//! down, and its result is one line on stderr: `hook: ACTION: allowed`, or the name of the error.

use memmap2::MmapMut;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType};
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const VARIABLE: &str = "WASM_CPI_HOOK";

/// The prefix of an action that the compiling child runs.
const CHILD: &str = "child:";

/// The process that runs the hook.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Call,
    Child,
}

/// Attempts the actions for this process and reports each result.
pub fn run(role: Role) {
    for action in actions().split(';').filter(|action| !action.is_empty()) {
        let (attempted, by) = match action.strip_prefix(CHILD) {
            Some(attempted) => (attempted, Role::Child),
            None => (action, Role::Call),
        };
        if by == role {
            let outcome = attempt(attempted, action).map_or_else(|error| name(&error), |()| "allowed".into());
            let _ = writeln!(std::io::stderr(), "hook: {action}: {outcome}");
        }
    }
}

/// Passes the actions to the compiling child, and lets it write to stderr.
pub fn pass_to_child(command: &mut Command) {
    if actions().contains(CHILD) {
        command.env(VARIABLE, actions()).stderr(Stdio::inherit());
    }
}

#[expect(clippy::disallowed_methods, reason = "not a setting: no build that ships has it")]
fn actions() -> String {
    std::env::var(VARIABLE).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "what an attacker would do")]
fn attempt(action: &str, whole: &str) -> Result<()> {
    let (what, with) = action.split_once(':').unwrap_or((action, ""));
    match what {
        "open" => File::open(with).map(drop),
        "write" => File::options().write(true).create(true).truncate(false).open(with).map(drop),
        "stat" => std::fs::metadata(with).map(drop),
        "list" => std::fs::read_dir(with).map(drop),
        "mkdir" => std::fs::create_dir(with),
        "unlink" => std::fs::remove_file(with),
        "spawn" => Command::new(with).spawn().and_then(|mut child| child.wait()).map(drop),
        // The shell reports the result if `exec` is allowed.
        "exec" => Err(Command::new("/bin/sh").args(["-c", "echo \"hook: $1: allowed\" >&2", "sh", whole]).exec()),
        "thread" => std::thread::Builder::new().spawn(|| ()).map(|thread| drop(thread.join())),
        "code" => MmapMut::map_anon(4096)?.make_exec().map(drop),
        "connect" => TcpStream::connect(address(with)?).map(drop),
        "listen" => TcpListener::bind(address(with)?).map(drop),
        "udp" => UdpSocket::bind("0.0.0.0:0")?.send_to(b"x", address(with)?).map(drop),
        "unix" => UnixDatagram::unbound().map(drop),
        "raw" => socket(AddressFamily::INET, SocketType::RAW, Some(rustix::net::ipproto::TCP)).map(drop),
        "mptcp" => {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(rustix::net::ipproto::MPTCP))?;
            Ok(rustix::net::connect(socket, &address(with)?)?)
        }
        "fastopen" => {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            let flags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN.cast_unsigned());
            rustix::net::sendto(socket, b"x", flags, &address(with)?)?;
            Ok(())
        }
        "signal" => Ok(rustix::process::test_kill_process(pid(with)?)?),
        "trace" => {
            let pid = nix::unistd::Pid::from_raw(pid(with)?.as_raw_nonzero().get());
            nix::sys::ptrace::attach(pid)?;
            nix::sys::wait::waitpid(pid, None)?;
            Ok(nix::sys::ptrace::detach(pid, None)?)
        }
        "setuid" => {
            let own = rustix::process::getuid();
            Ok(rustix::thread::set_thread_res_uid(own, own, own)?)
        }
        "limit" => {
            let now = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            Ok(rustix::process::setrlimit(rustix::process::Resource::Nofile, now)?)
        }
        "alone" => match std::fs::read_dir("/proc/self/task")?.count() {
            1 => Ok(()),
            threads => Err(Error::other(format!("{threads} threads"))),
        },
        _ => Err(Error::new(ErrorKind::InvalidInput, "unknown action")),
    }
}

fn socket(family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> Result<std::os::fd::OwnedFd> {
    Ok(rustix::net::socket(family, kind, protocol)?)
}

fn address(text: &str) -> Result<SocketAddr> {
    text.parse().map_err(Error::other)
}

fn pid(text: &str) -> Result<rustix::process::Pid> {
    let pid = text.parse().ok().and_then(rustix::process::Pid::from_raw);
    pid.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "not a process ID"))
}

fn name(error: &Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "EPERM".into(),
        Some(libc::EACCES) => "EACCES".into(),
        _ => error.to_string(),
    }
}
