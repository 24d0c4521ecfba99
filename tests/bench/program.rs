//! One run of a program, from the moment it is asked for until it is gone:
//! `posix_spawn`, `wait4`, and what the kernel counted meanwhile.
//!
//! Files are opened before the clock starts and read after it stopped. A run that
//! does not answer without an error is no measurement, and ends the whole.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Runs one program and tells how much memory it took: see `memory`.
pub(crate) const ALONE: &str = "--alone";

#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    words: Vec<PathBuf>,
    /// What it reads; the whole is one request.
    request: PathBuf,
    /// What its answer has to hold.
    says: &'static str,
}

pub(crate) struct Sample {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) page_faults: u64,
}

impl Program {
    pub(crate) fn new(name: &str, words: &[&Path], request: &Path) -> Program {
        let words = words.iter().map(|word| word.to_path_buf()).collect();
        Program { name: name.to_owned(), words, request: request.to_owned(), says: r#""error":null"# }
    }

    /// One that answers in other words than a CPI.
    pub(crate) fn saying(self, says: &'static str) -> Program {
        Program { says, ..self }
    }

    pub(crate) fn run(&self) -> Result<Sample, String> {
        self.try_run().map_err(|error| format!("{}: {error}", self.name))
    }

    fn try_run(&self) -> io::Result<Sample> {
        let answer = tempfile::tempfile()?;
        let mut command = self.command(&self.words, &answer)?;
        let begun = Instant::now();
        let child = command.spawn()?;
        let (status, usage) = wait4(child.id())?;
        let wall = begun.elapsed();
        self.expect(status, answer)?;
        let time = |of: libc::timeval| {
            Duration::from_secs(of.tv_sec.unsigned_abs()) + Duration::from_micros(of.tv_usec.unsigned_abs())
        };
        Ok(Sample {
            wall,
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            page_faults: usage.ru_minflt.unsigned_abs() + usage.ru_majflt.unsigned_abs(),
        })
    }

    /// Its peak memory in KiB. A process counts what its parent had when it was
    /// spawned, so that the parent has to be a small one: this program once more.
    pub(crate) fn memory(&self) -> Result<u64, String> {
        let measured = || -> io::Result<u64> {
            let (answer, told) = (tempfile::tempfile()?, tempfile::NamedTempFile::new()?);
            let mut words = vec![std::env::current_exe()?, ALONE.into(), told.path().to_owned()];
            words.extend_from_slice(&self.words);
            let status = self.command(&words, &answer)?.status()?;
            self.expect(status, answer)?;
            std::fs::read_to_string(told.path())?.trim().parse().map_err(io::Error::other)
        };
        measured().map_err(|error| format!("{}: {error}", self.name))
    }

    /// As a Director starts a CPI: nothing but `PATH` in its environment.
    fn command(&self, words: &[PathBuf], answer: &File) -> io::Result<Command> {
        let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("no program"))?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(File::open(&self.request)?).stdout(answer.try_clone()?).stderr(Stdio::null());
        Ok(command)
    }

    fn expect(&self, status: ExitStatus, answer: File) -> io::Result<()> {
        use std::io::{Read, Seek};
        let (mut said, mut answer) = (String::new(), answer);
        answer.rewind()?;
        answer.read_to_string(&mut said)?;
        if status.success() && said.contains(self.says) {
            return Ok(());
        }
        said.truncate(said.floor_char_boundary(2000));
        Err(io::Error::other(format!("{status}, and it said: {said}")))
    }
}

/// `--alone FILE PROGRAM ARGUMENT ...`: the program's peak memory goes to the file.
pub(crate) fn alone(words: &[PathBuf]) -> io::Result<()> {
    let [told, program, arguments @ ..] = words else { return Err(io::Error::other("no program")) };
    let child = Command::new(program).args(arguments).spawn()?;
    let (status, usage) = wait4(child.id())?;
    std::fs::write(told, usage.ru_maxrss.to_string())?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// What the standard library's `wait` does, with what the process used.
#[expect(unsafe_code, reason = "no well kept crate has page faults among what it tells")]
fn wait4(id: u32) -> io::Result<(ExitStatus, libc::rusage)> {
    let id = libc::pid_t::try_from(id).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: all zeros are a value of this structure of numbers, and the kernel
    // writes within the two that it is given.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(id, &raw mut status, 0, &raw mut usage), usage)
    };
    if waited == id { Ok((ExitStatus::from_raw(status), usage)) } else { Err(io::Error::last_os_error()) }
}
