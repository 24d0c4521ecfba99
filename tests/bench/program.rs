//! Measures one run of a program from `posix_spawn` to `wait4`, with the resource usage
//! that the kernel reports.
//!
//! Files are opened before the measurement starts and read after it ends. A run that
//! fails ends the whole benchmark.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The argument that makes this program measure another one's memory: see `memory`.
pub(crate) const PEAK_MEMORY: &str = "--peak-memory";

#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// The program and its arguments.
    command_line: Vec<PathBuf>,
    /// The file with the request, which is the program's stdin.
    request: PathBuf,
    /// A text that its output must contain.
    expected_output: &'static str,
}

pub(crate) struct Sample {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) page_faults: u64,
}

impl Program {
    pub(crate) fn new(name: &str, command_line: &[&Path], request: &Path) -> Program {
        let command_line = command_line.iter().map(|argument| argument.to_path_buf()).collect();
        let expected_output = r#""error":null"#;
        Program { name: name.to_owned(), command_line, request: request.to_owned(), expected_output }
    }

    /// Sets the expected output of a program that is not a CPI.
    pub(crate) fn expecting(self, expected_output: &'static str) -> Program {
        Program { expected_output, ..self }
    }

    pub(crate) fn run(&self) -> Result<Sample, String> {
        self.run_with_output().map(|(sample, _)| sample)
    }

    pub(crate) fn run_with_output(&self) -> Result<(Sample, String), String> {
        self.try_run().map_err(|error| format!("{}: {error}", self.name))
    }

    fn try_run(&self) -> io::Result<(Sample, String)> {
        let answer = tempfile::tempfile()?;
        let mut command = self.command(&self.command_line, &answer)?;
        let start = Instant::now();
        let child = command.spawn()?;
        let (status, usage) = wait4(child.id())?;
        let wall = start.elapsed();
        let output = self.expect(status, answer)?;
        let time = |of: libc::timeval| {
            Duration::from_secs(of.tv_sec.unsigned_abs()) + Duration::from_micros(of.tv_usec.unsigned_abs())
        };
        let sample = Sample {
            wall,
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            page_faults: usage.ru_minflt.unsigned_abs() + usage.ru_majflt.unsigned_abs(),
        };
        Ok((sample, output))
    }

    /// Returns the peak memory in KiB. The peak of a process includes the memory of its
    /// parent at the time of the spawn, so a small process must start it: another
    /// instance of this program.
    pub(crate) fn memory(&self) -> Result<u64, String> {
        let measured = || -> io::Result<u64> {
            let (answer, result) = (tempfile::tempfile()?, tempfile::NamedTempFile::new()?);
            let mut command_line = vec![std::env::current_exe()?, PEAK_MEMORY.into(), result.path().to_owned()];
            command_line.extend_from_slice(&self.command_line);
            let status = self.command(&command_line, &answer)?.status()?;
            self.expect(status, answer)?;
            std::fs::read_to_string(result.path())?.trim().parse().map_err(io::Error::other)
        };
        measured().map_err(|error| format!("{}: {error}", self.name))
    }

    /// Returns a command as a Director starts a CPI: the environment contains only
    /// `PATH`.
    fn command(&self, command_line: &[PathBuf], answer: &File) -> io::Result<Command> {
        let (program, arguments) = command_line.split_first().ok_or_else(|| io::Error::other("no program"))?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(File::open(&self.request)?).stdout(answer.try_clone()?).stderr(Stdio::null());
        Ok(command)
    }

    /// Returns the output, or an error if the program failed or its output is not as expected.
    fn expect(&self, status: ExitStatus, answer: File) -> io::Result<String> {
        use std::io::{Read, Seek};
        let (mut output, mut answer) = (String::new(), answer);
        answer.rewind()?;
        answer.read_to_string(&mut output)?;
        if status.success() && output.contains(self.expected_output) {
            return Ok(output);
        }
        output.truncate(output.floor_char_boundary(2000));
        Err(io::Error::other(format!("{status}, with the output: {output}")))
    }
}

/// Handles `--peak-memory FILE PROGRAM ARGUMENT...`: runs the program and writes its
/// peak memory to the file.
pub(crate) fn measure_peak_memory(arguments: &[PathBuf]) -> io::Result<()> {
    let [result, program, arguments @ ..] = arguments else { return Err(io::Error::other("no program")) };
    let child = Command::new(program).args(arguments).spawn()?;
    let (status, usage) = wait4(child.id())?;
    std::fs::write(result, usage.ru_maxrss.to_string())?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// Waits for a process like the standard library, and returns its resource usage, too.
#[expect(unsafe_code, reason = "no well-maintained crate reports page faults")]
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
