//! The processes of one cloud: starts them with a clean environment, finds and kills them.
//!
//! Each of them, and every process that it starts, has the cloud's directory in a variable
//! of its environment. The processes are found by this variable, also after a crash: a
//! process ID from a file could belong to an unrelated process by then. They are killed
//! without a graceful shutdown, because their state is deleted as well.

use crate::command;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that marks the processes of a cloud.
const MARK: &str = "WASM_CPI_CLOUD";

/// How many lines of a log an error shows.
const TAIL: usize = 25;

/// The time between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Processes {
    home: PathBuf,
    path: String,
}

/// A process in the background.
pub(super) struct BackgroundProcess {
    child: Child,
    log: PathBuf,
}

impl Processes {
    /// The directories of `path` precede those of the system in the PATH of all programs.
    pub(super) fn new(home: &Path, path: &[&Path]) -> Processes {
        let first = path.iter().map(|directory| format!("{}:", directory.display())).collect::<String>();
        let path = format!("{first}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        Processes { home: home.to_path_buf(), path }
    }

    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env(MARK, &self.home).env("PATH", &self.path).env("LANG", "C.UTF-8");
        // Without SPT_NOENV, programs that set their process title overwrite their environment with it.
        command.env("SPT_NOENV", "1").env("HOME", self.home.join("state")).current_dir(&self.home);
        command
    }

    /// Starts the command in its own process group, so that Ctrl-C at the terminal does not reach it.
    pub(super) fn start(&self, name: &str, command: &mut Command) -> Result<BackgroundProcess> {
        let log = self.log(name)?;
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.1.try_clone()?)
            .stderr(log.1)
            .spawn()
            .with_context(|| format!("{name} could not be started"))?;
        fs::create_dir_all(self.home.join("pids"))?;
        fs::write(self.pid_file(name), child.id().to_string())?;
        Ok(BackgroundProcess { child, log: log.0 })
    }

    /// Runs the command to its end; the error shows the end of its log.
    pub(super) fn run(&self, name: &str, command: &mut Command) -> Result<()> {
        let (path, log) = self.log(name)?;
        let status = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).status();
        check_status(name, status, &path)
    }

    /// Runs the command with a text on its stdin; returns its stdout.
    pub(super) fn run_with_input(&self, name: &str, command: &mut Command, text: &str) -> Result<String> {
        let (path, log) = self.log(name)?;
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = child.with_context(|| format!("{name} could not be started"))?;
        let mut output = String::new();
        if let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) {
            // If the process ends without reading, its exit status decides. The text is short, so this cannot block.
            drop(stdin.write_all(text.as_bytes()));
            drop(stdin);
            stdout.read_to_string(&mut output)?;
        }
        check_status(name, child.wait(), &path)?;
        Ok(output)
    }

    pub(super) fn end_of_log(&self, name: &str) -> String {
        tail(&self.log_file(name))
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.home.join("log").join(format!("{name}.log"))
    }

    /// Opens the log of that name for appending.
    fn log(&self, name: &str) -> Result<(PathBuf, File)> {
        fs::create_dir_all(self.home.join("log"))?;
        let path = self.log_file(name);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("{} could not be opened", path.display()))?;
        Ok((path, file))
    }

    pub(super) fn is_running(&self, name: &str) -> bool {
        let pid = fs::read_to_string(self.pid_file(name)).ok().and_then(|pid| pid.parse().ok());
        pid.is_some_and(|pid| is_marked(pid, &self.home))
    }

    fn pid_file(&self, name: &str) -> PathBuf {
        self.home.join("pids").join(name)
    }

    /// Kills all processes of the cloud; returns how many there were.
    pub(super) fn stop(&self) -> Result<usize> {
        let found = marked(&self.home)?.len();
        for _ in 0..100 {
            let pids = marked(&self.home)?;
            if pids.is_empty() {
                return Ok(found);
            }
            // `kill` fails if a process has already ended; the next look decides.
            let mut kill = command::new("sh");
            kill.args(["-c", "kill -9 \"$@\"", "sh"]).args(pids.iter().map(u32::to_string));
            kill.stderr(Stdio::null()).status().context("`sh` could not be started")?;
            thread::sleep(PAUSE);
        }
        bail!("these processes still run after they were killed: {:?}", marked(&self.home)?)
    }
}

impl BackgroundProcess {
    /// Waits until `ready` returns true; the error shows the end of the process's log.
    pub(super) fn wait(&mut self, name: &str, seconds: u64, mut ready: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{name} ended before it was ready ({status}); {}", tail(&self.log));
            }
            if Instant::now() > deadline {
                bail!("{name} is not ready after {seconds} s; {}", tail(&self.log));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Waits for the end of a process that was asked to end.
    pub(super) fn wait_for_end(&mut self, name: &str, seconds: u64) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("{name} has not ended after {seconds} s; {}", tail(&self.log));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn check_status(name: &str, status: std::io::Result<ExitStatus>, log: &Path) -> Result<()> {
    let status = status.with_context(|| format!("{name} could not be started"))?;
    if !status.success() {
        bail!("{name} failed ({status}); {}", tail(log));
    }
    Ok(())
}

/// Returns true if the port accepts connections.
pub(super) fn listens(port: u16) -> bool {
    connect(port).is_some()
}

/// Returns true if the port answers HTTP, with any status.
pub(super) fn answers_http(port: u16) -> bool {
    let request = || {
        let mut stream = connect(port)?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").ok()?;
        let mut start = [0; 5];
        stream.read_exact(&mut start).ok()?;
        (start == *b"HTTP/").then_some(())
    };
    request().is_some()
}

fn connect(port: u16) -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()
}

/// Returns the processes that carry the mark of this directory.
fn marked(home: &Path) -> Result<Vec<u32>> {
    let entries = fs::read_dir("/proc").context("/proc cannot be read")?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(pids.filter(|&pid| is_marked(pid, home)).collect())
}

fn is_marked(pid: u32, home: &Path) -> bool {
    let mark = format!("{MARK}={}", home.display());
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
}

/// Returns the path and the last lines of a log, for an error.
fn tail(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(TAIL)..];
    format!("the end of {}:\n      {}", log.display(), last.join("\n      "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn sleeper(processes: &Processes) -> BackgroundProcess {
        // It has a child that leaves the process group, as daemons do.
        let script = "setsid sleep 1000 & exec sleep 1000";
        processes.start("sleeper", processes.command("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn stopping_kills_all_processes_of_one_cloud_and_no_others() {
        let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mine, other) = (Processes::new(mine.path(), &[]), Processes::new(other.path(), &[]));
        let (_one, _two) = (sleeper(&mine), sleeper(&other));
        // A process has its mark only after it has called exec.
        let all = || marked(&mine.home).unwrap().len() + marked(&other.home).unwrap().len();
        for _ in (0..300).take_while(|_| all() < 4) {
            thread::sleep(PAUSE);
        }
        assert!(all() >= 4);
        assert!(mine.is_running("sleeper") && !mine.is_running("absent"));
        // There may be more: a process that was forked and has not called exec yet counts, too.
        assert!(mine.stop().unwrap() >= 2);
        assert!(!mine.is_running("sleeper") && other.is_running("sleeper"));
        assert!(mine.stop().unwrap() == 0 && other.stop().unwrap() >= 2);
    }

    #[test]
    fn the_environment_of_the_user_is_not_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let processes = Processes::new(dir.path(), &[Path::new("/own")]);
        let printed = processes.run_with_input("env", processes.command("env").arg("-u").arg("_"), "").unwrap();
        let mut names: Vec<&str> = printed.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LANG", "PATH", "SPT_NOENV", MARK]);
        assert!(printed.contains("PATH=/own:/usr/"), "{printed}");
    }

    #[test]
    fn a_failure_shows_the_end_of_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let processes = Processes::new(dir.path(), &[]);
        let script = "seq 100; echo why >&2; exit 3";
        let error = processes.run("it", processes.command("sh").args(["-c", script])).unwrap_err().to_string();
        for part in ["it failed", "exit status: 3", "it.log", "\n      100\n", "why"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("\n      75\n"), "{error}");
        let mut started = processes.start("it", processes.command("sh").args(["-c", "echo more; exit 4"])).unwrap();
        let error = started.wait("it", 60, || false).unwrap_err().to_string();
        assert!(error.contains("exit status: 4") && error.contains("more"), "{error}");
    }

    #[test]
    fn a_command_reads_the_text_on_stdin_and_its_stdout_is_returned() {
        let dir = tempfile::tempdir().unwrap();
        let processes = Processes::new(dir.path(), &[]);
        assert_eq!(processes.run_with_input("it", &mut processes.command("cat"), "abc").unwrap(), "abc");
        assert!(processes.run_with_input("it", &mut processes.command("false"), "abc").is_err());
    }

    #[test]
    fn only_a_port_that_speaks_http_counts_as_answering() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = |answer: &'static [u8]| {
            let listener = listener.try_clone().unwrap();
            thread::spawn(move || listener.accept().unwrap().0.write_all(answer).unwrap())
        };
        for (answer, good) in [(&b"HTTP/1.1 300 Multiple Choices\r\n\r\n"[..], true), (b"SSH-2.0-x\r\n", false)] {
            let server = serve(answer);
            assert_eq!(answers_http(port), good);
            server.join().unwrap();
        }
        assert!(listens(port));
        // Port 1 is unused. A port that was just closed may still be open in a process that another test starts.
        assert!(!listens(1) && !answers_http(1));
    }
}
