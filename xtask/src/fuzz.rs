//! `cargo xtask fuzz`: builds the fuzzer and lets it look for inputs that break
//! what the bodies in `tests/fuzz` assert, for a bounded time.
//!
//! libFuzzer with the stable compiler. Seeds lie in `tests/fuzz/corpus`; what
//! is found on the way stays under `target/fuzz`, and nothing is written to the
//! repository.

mod engine;
mod report;

pub(crate) mod compiler;

use crate::arguments::Fuzz;
use crate::command;
use crate::files;
use crate::repo::Repo;
use anyhow::{Context, Result, anyhow, bail};
use report::{Crash, Row};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

/// What a run takes that nobody asked to be longer.
pub(crate) const DEFAULT_SECONDS: u64 = 60;

/// And the one that belongs to the tests, which sets out the same way each time, as
/// far as its time goes. Others begin anywhere.
const TEST_SECONDS: u64 = 30;
const TEST_SEED: &str = "-seed=1";

/// From here on it pays to optimise, and to go on where the last run ended.
const LONG: u64 = 600;

/// Seconds for one input: nothing that is fuzzed takes a thousandth of it.
const HANGS: &str = "-timeout=60";

pub(crate) fn task(repo: &Repo, fuzz: &Fuzz) -> Result<()> {
    let seconds = fuzz.minutes.map_or(DEFAULT_SECONDS, |minutes| minutes * 60);
    let fuzzer = Fuzzer::build(repo, seconds)?;
    let Some(target) = &fuzz.target else { return fuzzer.run(&fuzzer.targets, seconds) };
    if !fuzzer.targets.contains(target) {
        bail!("there is no target `{target}`; there are: {}", fuzzer.targets.join(", "));
    }
    fuzzer.run(std::slice::from_ref(target), seconds)
}

/// Every target for its share of the time; an error if one of them crashed.
pub(crate) fn run(repo: &Repo, seconds_in_all: u64) -> Result<()> {
    let fuzzer = Fuzzer::build(repo, seconds_in_all)?;
    fuzzer.run(&fuzzer.targets, seconds_in_all)
}

/// The same, as the tests do it.
pub(crate) fn test(repo: &Repo) -> Result<()> {
    let fuzzer = Fuzzer { seed: Some(TEST_SEED), ..Fuzzer::build(repo, TEST_SECONDS)? };
    fuzzer.run(&fuzzer.targets, TEST_SECONDS)
}

/// How many programs run at once.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

struct Fuzzer {
    program: PathBuf,
    /// Below it, a directory of seeds for each target.
    seeds: PathBuf,
    /// Where everything goes that a run leaves behind.
    work: PathBuf,
    targets: Vec<String>,
    seed: Option<&'static str>,
}

impl Fuzzer {
    fn build(repo: &Repo, seconds: u64) -> Result<Fuzzer> {
        let linking = engine::linking(repo)?;
        let mut cargo = repo.cargo_static("rustc");
        compiler::wrap(&mut cargo)?;
        let level = if seconds < LONG { 0 } else { 3 };
        cargo.arg("--release");
        for package in ["wasm-cpi", "wasm-cpi-policy"] {
            cargo.args(["--config", &format!("profile.release.package.{package}.opt-level={level}")]);
        }
        cargo.args(["--package", "fuzz", "--features", "engine", "--bin", "fuzz", "--"]);
        command::run(cargo.arg(format!("@{}", linking.display())))?;
        let program = repo.root.join("target").join(&repo.triple).join("release/fuzz");
        let targets = command::read(command::new(&program).arg("--list"))?.lines().map(str::to_owned).collect();
        let work = repo.root.join("target/fuzz");
        let fuzzer = Fuzzer { program, seeds: repo.root.join("tests/fuzz/corpus"), work, targets, seed: None };
        fuzzer.check_seeds()?;
        fuzzer.prepare(seconds)?;
        Ok(fuzzer)
    }

    /// Seeds of a target that is gone, a target without seeds, or a seed whose name
    /// is the fuzzer's and says nothing, is a mistake.
    fn check_seeds(&self) -> Result<()> {
        let mut seeded = Vec::new();
        for entry in fs::read_dir(&self.seeds).with_context(|| format!("{} is missing", self.seeds.display()))? {
            let entry = entry?;
            seeded.push(entry.file_name().to_string_lossy().into_owned());
            for seed in fs::read_dir(entry.path())? {
                let seed = seed?.path();
                let name = seed.file_name().unwrap_or_default().to_string_lossy();
                if name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    bail!("{} is a seed without a name: name what it shows", seed.display());
                }
            }
        }
        seeded.sort();
        if seeded != self.targets {
            bail!("{} has seeds for {seeded:?}, and the targets are {:?}", self.seeds.display(), self.targets);
        }
        Ok(())
    }

    /// A short run begins anew, so that it does not spend its time on what others found.
    fn prepare(&self, seconds: u64) -> Result<()> {
        let corpus = self.work.join("corpus");
        if seconds < LONG && corpus.exists() {
            fs::remove_dir_all(&corpus).with_context(|| format!("{} cannot be removed", corpus.display()))?;
        }
        ["logs", "crashes"].iter().try_for_each(|name| files::directory(&self.work.join(name), 0o755))
    }

    fn run(&self, targets: &[String], seconds: u64) -> Result<()> {
        let workers = cores().min(targets.len()).max(1);
        let share = (seconds * workers as u64 / targets.len().max(1) as u64).max(1);
        eprintln!("    {} targets for {share} s each, {workers} at a time", targets.len());
        let waiting = Mutex::new(targets.iter());
        let next = || waiting.lock().ok().and_then(|mut waiting| waiting.next());
        let work = || std::iter::from_fn(next).map(|target| self.one(target, share)).collect::<Result<Vec<Row>>>();
        let rows = thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a thread panicked"))?);
            joined.collect::<Result<Vec<Vec<Row>>>>()
        })?;
        let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
        rows.sort_by(|one, other| one.target.cmp(&other.target));
        self.judge(&rows)
    }

    fn one(&self, target: &str, seconds: u64) -> Result<Row> {
        let corpus = self.work.join("corpus").join(target);
        files::directory(&corpus, 0o755)?;
        let mut fuzzer = command::new(&self.program);
        fuzzer.arg(format!("--target={target}")).arg(format!("-max_total_time={seconds}"));
        fuzzer.args(self.seed).args([HANGS, "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1"]);
        fuzzer.arg(format!("-artifact_prefix={}-", self.work.join("crashes").join(target).display()));
        let output = fuzzer.arg(&corpus).arg(self.seeds.join(target)).env("RUST_BACKTRACE", "1").output();
        let output = output.with_context(|| format!("{} could not be started", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stderr);
        files::write(&self.work.join("logs").join(target), &text, 0o644)?;
        let row = Row::read(target, &text, output.status.success());
        eprintln!("    {}", row.line());
        Ok(row)
    }

    fn judge(&self, rows: &[Row]) -> Result<()> {
        let crashed = rows.iter().filter_map(|row| Some((&row.target, row.crash.as_ref()?)));
        let tell = |(target, crash): (&String, &Crash)| {
            let log = self.work.join("logs").join(target);
            let again = match &crash.input {
                Some(input) => format!("\n  again: {} --target={target} {input}", self.program.display()),
                None => String::new(),
            };
            format!("{target}: {}\n  log: {}{again}", crash.what, log.display())
        };
        let told: Vec<String> = crashed.map(tell).collect();
        if told.is_empty() { Ok(()) } else { bail!("{} targets crashed\n{}", told.len(), told.join("\n")) }
    }
}
