//! For mutation tests (feature `holes`, never in a build that ships):
//! native code at the very place where the guest's would begin.
//!
//! `WASM_CPI_HOOK` names actions, `;` between them. Each is tried once the
//! process is locked down, and answered with one line on stderr:
//! `hook: ACTION: allowed`, or the name of the error.

use memmap2::MmapMut;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType};
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const VARIABLE: &str = "WASM_CPI_HOOK";

/// Before an action that is the compiling child's.
const CHILD: &str = "child:";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Call,
    Child,
}

pub fn run(whose: Whose) {
    for action in wanted().split(';').filter(|action| !action.is_empty()) {
        let (its, of) = match action.strip_prefix(CHILD) {
            Some(its) => (its, Whose::Child),
            None => (action, Whose::Call),
        };
        if of == whose {
            let outcome = attempt(its, action).map_or_else(|error| name(&error), |()| "allowed".into());
            let _ = writeln!(std::io::stderr(), "hook: {action}: {outcome}");
        }
    }
}

/// Lets the child hear of it, and be heard.
pub fn hand_on(command: &mut Command) {
    if wanted().contains(CHILD) {
        command.env(VARIABLE, wanted()).stderr(Stdio::inherit());
    }
}

#[expect(clippy::disallowed_methods, reason = "no setting: no build that ships has it")]
fn wanted() -> String {
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
        // Answers by itself where it is allowed.
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
        _ => Err(Error::new(ErrorKind::InvalidInput, "no such action")),
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
    pid.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "no process ID"))
}

fn name(error: &Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "EPERM".into(),
        Some(libc::EACCES) => "EACCES".into(),
        _ => error.to_string(),
    }
}
