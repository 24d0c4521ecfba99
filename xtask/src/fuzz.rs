//! `cargo xtask fuzz`: builds the fuzzer and runs it for a limited time. It searches for
//! inputs that violate an assertion in `tests/fuzz`.
//!
//! The fuzzer is libFuzzer with the stable compiler. The seeds are in `tests/fuzz/corpus`;
//! everything that a run writes is below `target/fuzz`.

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

/// The duration of a run without `--minutes`.
pub(crate) const DEFAULT_SECONDS: u64 = 60;

/// What `cargo xtask test` tries of each target: a fixed number of inputs from a fixed random seed.
/// So a change that is correct passes on a fast and on a slow machine; other runs have a random seed.
const TEST_EXTENT: [&str; 2] = ["-runs=5000", "-seed=1"];

/// A run of this duration is worth an optimised build, and continues with the corpus of the last run.
const LONG_RUN_SECONDS: u64 = 600;

/// The time limit for one input. Every target needs less than a thousandth of it.
const INPUT_TIMEOUT: &str = "-timeout=60";

pub(crate) fn task(repo: &Repo, fuzz: &Fuzz) -> Result<()> {
    let seconds = fuzz.minutes.map_or(DEFAULT_SECONDS, |minutes| minutes * 60);
    let fuzzer = Fuzzer::build(repo, seconds)?;
    let Some(target) = &fuzz.target else { return fuzzer.run_for(&fuzzer.targets, seconds) };
    if !fuzzer.targets.contains(target) {
        bail!("there is no fuzz target `{target}`; the targets are {}", fuzzer.targets.join(", "));
    }
    fuzzer.run_for(std::slice::from_ref(target), seconds)
}

/// Runs every target for its share of the time; returns an error if a target crashed.
pub(crate) fn run(repo: &Repo, total_seconds: u64) -> Result<()> {
    let fuzzer = Fuzzer::build(repo, total_seconds)?;
    fuzzer.run_for(&fuzzer.targets, total_seconds)
}

/// Runs every target as part of `cargo xtask test`.
pub(crate) fn test(repo: &Repo) -> Result<()> {
    let fuzzer = Fuzzer::build(repo, 0)?;
    fuzzer.run(&fuzzer.targets, &TEST_EXTENT)
}

/// Returns how many targets run at the same time.
fn workers(targets: &[String]) -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(targets.len()).max(1)
}

struct Fuzzer {
    program: PathBuf,
    /// The directory that has a directory of seeds for each target.
    seeds: PathBuf,
    /// The directory for everything that a run writes.
    work: PathBuf,
    targets: Vec<String>,
}

impl Fuzzer {
    fn build(repo: &Repo, seconds: u64) -> Result<Fuzzer> {
        let link_arguments = engine::link_arguments(repo)?;
        let mut cargo = repo.cargo_static("rustc");
        compiler::wrap(&mut cargo)?;
        let level = if seconds < LONG_RUN_SECONDS { 0 } else { 3 };
        cargo.arg("--release");
        for package in ["wasm-cpi", "wasm-cpi-policy"] {
            cargo.args(["--config", &format!("profile.release.package.{package}.opt-level={level}")]);
        }
        cargo.args(["--package", "fuzz", "--features", "engine", "--bin", "fuzz", "--"]);
        command::run(cargo.arg(format!("@{}", link_arguments.display())))?;
        let program = repo.built("fuzz");
        let targets = command::read(command::new(&program).arg("--list"))?.lines().map(str::to_owned).collect();
        let work = repo.root.join("target/fuzz");
        let fuzzer = Fuzzer { program, seeds: repo.root.join("tests/fuzz/corpus"), work, targets };
        fuzzer.check_seeds()?;
        fuzzer.prepare(seconds)?;
        Ok(fuzzer)
    }

    /// Rejects seeds without a target, a target without seeds, and a seed whose name is
    /// a digest that the fuzzer chose.
    fn check_seeds(&self) -> Result<()> {
        let mut seeded = Vec::new();
        for entry in fs::read_dir(&self.seeds).with_context(|| format!("{} cannot be read", self.seeds.display()))? {
            let entry = entry?;
            seeded.push(entry.file_name().to_string_lossy().into_owned());
            for seed in fs::read_dir(entry.path())? {
                let seed = seed?.path();
                let name = seed.file_name().unwrap_or_default().to_string_lossy();
                if name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    bail!("the name of the seed {} is a digest; rename it after what it shows", seed.display());
                }
            }
        }
        seeded.sort();
        if seeded != self.targets {
            bail!(
                "every fuzz target needs a directory of seeds, and every directory a target; {} has {seeded:?}, \
                 and the targets are {:?}",
                self.seeds.display(),
                self.targets
            );
        }
        Ok(())
    }

    /// Prepares the directories. A short run starts without the corpus of earlier runs, which
    /// it would spend its time on.
    fn prepare(&self, seconds: u64) -> Result<()> {
        let corpus = self.work.join("corpus");
        if seconds < LONG_RUN_SECONDS && corpus.exists() {
            fs::remove_dir_all(&corpus).with_context(|| format!("{} cannot be removed", corpus.display()))?;
        }
        ["logs", "crashes"].iter().try_for_each(|name| files::directory(&self.work.join(name), 0o755))
    }

    /// Gives every target its share of the time.
    fn run_for(&self, targets: &[String], seconds: u64) -> Result<()> {
        let share = (seconds * workers(targets) as u64 / targets.len().max(1) as u64).max(1);
        self.run(targets, &[&format!("-max_total_time={share}")])
    }

    /// Runs the targets; `extent` are the options of the fuzzer that end the run of each.
    fn run(&self, targets: &[String], extent: &[&str]) -> Result<()> {
        let workers = workers(targets);
        eprintln!("    {} targets with {}, {workers} at a time", targets.len(), extent.join(" "));
        let queue = Mutex::new(targets.iter());
        let next = || queue.lock().ok().and_then(|mut queue| queue.next());
        let work =
            || std::iter::from_fn(next).map(|target| self.run_target(target, extent)).collect::<Result<Vec<Row>>>();
        let rows = thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a thread panicked"))?);
            joined.collect::<Result<Vec<Vec<Row>>>>()
        })?;
        let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
        rows.sort_by(|one, other| one.target.cmp(&other.target));
        self.check_crashes(&rows)
    }

    fn run_target(&self, target: &str, extent: &[&str]) -> Result<Row> {
        let corpus = self.work.join("corpus").join(target);
        files::directory(&corpus, 0o755)?;
        let mut fuzzer = command::new(&self.program);
        fuzzer.arg(format!("--target={target}")).args(extent);
        fuzzer.args([INPUT_TIMEOUT, "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1"]);
        fuzzer.arg(format!("-artifact_prefix={}-", self.work.join("crashes").join(target).display()));
        let output = fuzzer.arg(&corpus).arg(self.seeds.join(target)).env("RUST_BACKTRACE", "1").output();
        let output = output.with_context(|| format!("{} could not be started", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stderr);
        files::write(&self.work.join("logs").join(target), &text, 0o644)?;
        let row = Row::read(target, &text, output.status.success());
        eprintln!("    {}", row.line());
        Ok(row)
    }

    /// Returns an error that describes every crash, and how to repeat it.
    fn check_crashes(&self, rows: &[Row]) -> Result<()> {
        let crashed = rows.iter().filter_map(|row| Some((&row.target, row.crash.as_ref()?)));
        let describe = |(target, crash): (&String, &Crash)| {
            let log = self.work.join("logs").join(target);
            let repeat = match &crash.input {
                Some(input) => format!("\n  to repeat it: {} --target={target} {input}", self.program.display()),
                None => String::new(),
            };
            format!("{target}: {}\n  log: {}{repeat}", crash.description, log.display())
        };
        let crashes: Vec<String> = crashed.map(describe).collect();
        if crashes.is_empty() {
            return Ok(());
        }
        bail!("{} of {} fuzz targets crashed:\n{}", crashes.len(), rows.len(), crashes.join("\n"))
    }
}
