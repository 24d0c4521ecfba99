//! The processes of one cloud: started with a clean environment, found and ended.
//!
//! Every one of them, and whatever it starts in turn, carries the cloud's directory
//! in a variable of its environment. That is how they are found again, also after a
//! crash: a number in a file could belong to somebody else by now. Nothing here asks
//! them to end in order, because their state is thrown away with them.

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

const MARK: &str = "WASM_CPI_CLOUD";

/// How much of a log an error shows.
const TAIL: usize = 25;

/// How often a wait looks.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Processes {
    home: PathBuf,
    path: String,
}

/// One that runs in the background.
pub(super) struct Started {
    child: Child,
    log: PathBuf,
}

impl Processes {
    /// `path` goes before the directories of the system in the programs' PATH.
    pub(super) fn new(home: &Path, path: &[&Path]) -> Processes {
        let own = path.iter().map(|directory| format!("{}:", directory.display())).collect::<String>();
        let path = format!("{own}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        Processes { home: home.to_path_buf(), path }
    }

    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env(MARK, &self.home).env("PATH", &self.path).env("LANG", "C.UTF-8");
        // Programs that change their title would write it over their environment.
        command.env("SPT_NOENV", "1").env("HOME", self.home.join("state")).current_dir(&self.home);
        command
    }

    /// Starts it in a process group of its own, so that a Ctrl-C at the terminal is not for it.
    pub(super) fn start(&self, name: &str, command: &mut Command) -> Result<Started> {
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
        Ok(Started { child, log: log.0 })
    }

    /// Runs it to its end; what it said is shown if it fails.
    pub(super) fn run(&self, name: &str, command: &mut Command) -> Result<()> {
        let (path, log) = self.log(name)?;
        let status = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).status();
        judge(name, status, &path)
    }

    /// The same with a text on its stdin; returns what it wrote to stdout.
    pub(super) fn ask(&self, name: &str, command: &mut Command, text: &str) -> Result<String> {
        let (path, log) = self.log(name)?;
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = child.with_context(|| format!("{name} could not be started"))?;
        let mut answer = String::new();
        if let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) {
            // One that ends without reading is judged by its status. A text is short, so that this cannot block.
            drop(stdin.write_all(text.as_bytes()));
            drop(stdin);
            stdout.read_to_string(&mut answer)?;
        }
        judge(name, child.wait(), &path)?;
        Ok(answer)
    }

    pub(super) fn end_of_log(&self, name: &str) -> String {
        tail(&self.log_file(name))
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.home.join("log").join(format!("{name}.log"))
    }

    /// The log of that name, to be added to.
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

    /// Ends everything that belongs to the cloud; says how many there were.
    pub(super) fn stop(&self) -> Result<usize> {
        let found = marked(&self.home)?.len();
        for _ in 0..100 {
            let pids = marked(&self.home)?;
            if pids.is_empty() {
                return Ok(found);
            }
            // Some may be gone by now: what counts is who is left.
            let mut kill = command::new("sh");
            kill.args(["-c", "kill -9 \"$@\"", "sh"]).args(pids.iter().map(u32::to_string));
            kill.stderr(Stdio::null()).status().context("`sh` could not be started")?;
            thread::sleep(PAUSE);
        }
        bail!("these processes do not end: {:?}", marked(&self.home)?)
    }
}

impl Started {
    pub(super) fn wait(&mut self, name: &str, seconds: u64, mut ready: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{name} ended ({status}); {}", tail(&self.log));
            }
            if Instant::now() > deadline {
                bail!("{name} is not ready after {seconds} s; {}", tail(&self.log));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// For one that was told to end.
    pub(super) fn wait_for_end(&mut self, name: &str, seconds: u64) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("{name} has not ended after {seconds} s");
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn judge(name: &str, status: std::io::Result<ExitStatus>, log: &Path) -> Result<()> {
    let status = status.with_context(|| format!("{name} could not be started"))?;
    if !status.success() {
        bail!("{name} failed ({status}); {}", tail(log));
    }
    Ok(())
}

/// Whether something takes connections there.
pub(super) fn listens(port: u16) -> bool {
    connect(port).is_some()
}

/// Whether something there answers HTTP, whatever the answer.
pub(super) fn answers(port: u16) -> bool {
    let ask = || {
        let mut stream = connect(port)?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").ok()?;
        let mut begin = [0; 5];
        stream.read_exact(&mut begin).ok()?;
        (begin == *b"HTTP/").then_some(())
    };
    ask().is_some()
}

fn connect(port: u16) -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()
}

/// The processes that carry the mark of this directory.
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

/// Where a log is, and its last lines.
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

    fn sleeper(processes: &Processes) -> Started {
        // With a child that has left the group, as daemons do.
        let script = "setsid sleep 1000 & exec sleep 1000";
        processes.start("sleeper", processes.command("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn everything_that_was_started_is_found_and_ended_and_nothing_else() {
        let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mine, other) = (Processes::new(mine.path(), &[]), Processes::new(other.path(), &[]));
        let (_one, _two) = (sleeper(&mine), sleeper(&other));
        assert!(mine.is_running("sleeper") && !mine.is_running("absent"));
        let all = || marked(&mine.home).unwrap().len() + marked(&other.home).unwrap().len();
        for _ in (0..300).take_while(|_| all() < 4) {
            thread::sleep(PAUSE);
        }
        assert!(all() >= 4);
        // More, if one is just about to become another.
        assert!(mine.stop().unwrap() >= 2);
        assert!(!mine.is_running("sleeper") && other.is_running("sleeper"));
        assert!(mine.stop().unwrap() == 0 && other.stop().unwrap() >= 2);
    }

    #[test]
    fn the_environment_of_the_user_is_not_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let processes = Processes::new(dir.path(), &[Path::new("/own")]);
        let seen = processes.ask("env", processes.command("env").arg("-u").arg("_"), "").unwrap();
        let mut names: Vec<&str> = seen.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LANG", "PATH", "SPT_NOENV", MARK]);
        assert!(seen.contains("PATH=/own:/usr/"), "{seen}");
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
    fn a_text_goes_in_and_an_answer_comes_out() {
        let dir = tempfile::tempdir().unwrap();
        let processes = Processes::new(dir.path(), &[]);
        assert_eq!(processes.ask("it", &mut processes.command("cat"), "abc").unwrap(), "abc");
        assert!(processes.ask("it", &mut processes.command("false"), "abc").is_err());
    }

    #[test]
    fn a_port_answers_only_if_http_comes_back() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = |answer: &'static [u8]| {
            let listener = listener.try_clone().unwrap();
            thread::spawn(move || listener.accept().unwrap().0.write_all(answer).unwrap())
        };
        for (answer, good) in [(&b"HTTP/1.1 300 Multiple Choices\r\n\r\n"[..], true), (b"SSH-2.0-x\r\n", false)] {
            let server = serve(answer);
            assert_eq!(answers(port), good);
            server.join().unwrap();
        }
        assert!(listens(port));
        // Nobody's; one that was just closed may still be open in a process that another test starts.
        assert!(!listens(1) && !answers(1));
    }
}
