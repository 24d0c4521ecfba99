//! The words after `cargo xtask`, and the help text.
//!
//! Parsed by hand: a few subcommands do not pay for an argument parser that would
//! have to be compiled before the first build can start.

use std::path::{Path, PathBuf};

pub(crate) const HELP: &str = "\
cargo xtask: builds, shows, packages and tests wasm-cpi

Usage: cargo xtask <COMMAND>

The two to begin with:
  demo               Set up, build, and play a deployment on a simulated OpenStack,
                     call by call as the Director makes them: result and time
  test [OPTIONS]     Set up, build, and run everything that must be green
      --quick        Between two edits: tidy, format, unit tests, and integration
                     tests on the simulator with programs that are not optimised;
                     the last lines list what it leaves out
      --only PART    lint    tidy, format, clippy, documentation, dependencies
                     unit    unit tests of runtime and xtask
                     guests  unit tests of the guests, natively
                     it      integration tests against the built binaries, on the
                             simulator and on a real OpenStack, started as root
                     attack  the corpus of attacks, then the fuzz targets
      --without openstack
                     Leave the real OpenStack out; the last line says NOT RUN
      -- ARGS...     Passed to the test programs, e.g. a filter
  attack [OPTIONS] [FILTER...]
                     Run the corpus of attacks against the built binaries, in
                     network namespaces of its own, then the fuzz targets
      --minutes N    For the fuzz targets (default: one); a filter leaves them out
      --holes        Instead, turn every named check off in turn and show the
                     attack that notices
  fuzz [TARGET] [--minutes N]
                     Let a fuzzer look for inputs that break what must hold of
                     every reader of hostile bytes, or of one of them, for a
                     minute or N; needs a C++ compiler

  bench [--quick]
                     Measure the runtime beside native programs in one run: what a
                     call costs from nothing, HTTPS, many at once, images, growth.
                     Wants a quiet machine; `--quick` takes less than two minutes.

On the way there:
  setup              Install what building guests needs, or say what is missing
  build              Build both binaries and all guests into target/dist
  guest DIR          Build the guest crate in DIR, like one that `wasm-cpi new`
                     wrote, also where rustup's wasm32-wasip2 cannot be installed,
                     and print the path of the .wasm file
  job OUT [OPTIONS]  Lay out a CPI job that a Director or the CLI can run as
                     OUT/bin/cpi. An existing job keeps its configuration; only
                     programs, script, guest and the guest's pin are renewed
      --guest GUEST  The guest to run: a .wasm file, or the name of one of this
                     repository, probe (default) or openstack
      --cloud sim|openstack
                     With `--guest openstack`: properties, preset and policy for
                     the cloud that `cargo xtask cloud up` started. Then call it:
                     OUT/packages/wasm-cpi/wasm-cpi call METHOD ARGS...
                     --config OUT/config/cpi.json
      --policy FILE  Its policy, a JSON object (default: grants nothing)
      --properties FILE|JSON
                     The operator's properties: an object, or a file that holds
                     one; secrets belong into a file
      --allow-local  Let grants reach this machine itself: for tests
      --no-build     Take the binaries from target/dist as they are
  release [OPTIONS]  Write the BOSH release as a tarball for Directors and the CLI,
                     the same bytes for the same input, and fill release/blobs for
                     `bosh create-release --force`; prints the tarball's path
      --version V    Its version (default: one that is told by its content)
      --out DIR      Where to write it (default: target/bosh)
      --no-build     Take the binaries from target/dist as they are
  cloud up|down openstack|sim
                     Start or end a cloud on this machine to try guests on, and
                     say where the file lies that tells how to reach it
                     openstack  the real services of OpenStack, with a hypervisor
                                that only pretends; as root, on Debian 12
                     sim        the simulator that tests use
  tidy               Check sizes of files, words and paths that must not occur

  -h, --help         This text
";

/// One group of the test suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Lint,
    Unit,
    Guests,
    Integration,
    Attack,
}

/// A cloud that can be started here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    Openstack,
    Sim,
}

impl Cloud {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cloud::Openstack => "openstack",
            Cloud::Sim => "sim",
        }
    }

    fn named(name: &str) -> Option<Cloud> {
        [Cloud::Openstack, Cloud::Sim].into_iter().find(|cloud| cloud.name() == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// Which attacks, and on what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attack {
    pub(crate) holes: bool,
    /// For the fuzz targets.
    pub(crate) minutes: Option<u64>,
    /// Parts of names; none means all.
    pub(crate) filters: Vec<String>,
}

/// The job to lay out, and with what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) out: PathBuf,
    /// A file, or the name of a guest of the repository.
    pub(crate) guest: Option<PathBuf>,
    /// The cloud that it is for.
    pub(crate) cloud: Option<Cloud>,
    pub(crate) policy: Option<PathBuf>,
    /// A JSON object, or the path of a file.
    pub(crate) properties: Option<String>,
    pub(crate) allow_local: bool,
    pub(crate) no_build: bool,
}

/// The release to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) version: Option<String>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) no_build: bool,
}

/// What to test, and how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) quick: bool,
    pub(crate) only: Option<Part>,
    pub(crate) without_openstack: bool,
    /// For the test programs.
    pub(crate) rest: Vec<String>,
}

/// What to fuzz, and for how long.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fuzz {
    pub(crate) target: Option<String>,
    pub(crate) minutes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bench {
    Full,
    Quick,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Attack(Attack),
    Bench(Bench),
    Setup,
    Build,
    Cloud { direction: Direction, cloud: Cloud },
    Demo,
    Fuzz(Fuzz),
    Guest { directory: PathBuf },
    Job(Job),
    Release(Release),
    Test(Test),
    Tidy,
}

pub(crate) fn parse(words: &[String]) -> Result<Task, String> {
    let Some((command, rest)) = words.split_first() else {
        return Ok(Task::Help);
    };
    let own = rest.iter().take_while(|word| *word != "--");
    if matches!(command.as_str(), "-h" | "--help" | "help") || own.into_iter().any(|w| w == "-h" || w == "--help") {
        return Ok(Task::Help);
    }
    match command.as_str() {
        "setup" => alone(Task::Setup, command, rest),
        "build" => alone(Task::Build, command, rest),
        "demo" => alone(Task::Demo, command, rest),
        "tidy" => alone(Task::Tidy, command, rest),
        "attack" => attack(rest),
        "bench" => bench(rest),
        "cloud" => cloud(rest),
        "fuzz" => fuzz(rest),
        "guest" => guest(rest),
        "job" => job(rest),
        "release" => release(rest),
        "test" => test(rest),
        other => Err(format!("unknown command `{other}`; `cargo xtask --help` lists them")),
    }
}

fn alone(task: Task, command: &str, rest: &[String]) -> Result<Task, String> {
    match rest.first() {
        None => Ok(task),
        Some(word) => Err(format!("`{command}` takes no arguments, got `{word}`")),
    }
}

fn bench(words: &[String]) -> Result<Task, String> {
    match words {
        [] => Ok(Task::Bench(Bench::Full)),
        [flag] if flag == "--quick" => Ok(Task::Bench(Bench::Quick)),
        _ => Err("`bench` takes `--quick` or nothing".to_owned()),
    }
}

fn attack(words: &[String]) -> Result<Task, String> {
    let mut attack = Attack::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--holes" => attack.holes = true,
            "--minutes" => attack.minutes = Some(minutes(words.next().map(String::as_str))?),
            flag if flag.starts_with('-') => return Err(format!("`attack` does not know `{flag}`")),
            filter => attack.filters.push(filter.to_owned()),
        }
    }
    match attack {
        Attack { holes: true, minutes: Some(_), .. } => {
            Err("`--minutes` is for fuzzing, which `--holes` leaves out".to_owned())
        }
        attack => Ok(Task::Attack(attack)),
    }
}

fn cloud(words: &[String]) -> Result<Task, String> {
    let usage = "cargo xtask cloud up|down openstack|sim";
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (direction, cloud) = match words.as_slice() {
        [direction, cloud] => (*direction, *cloud),
        [_, _, more, ..] => return Err(format!("`cloud` takes two words, got `{more}` as well: {usage}")),
        _ => return Err(format!("`cloud` needs a direction and a cloud: {usage}")),
    };
    let direction = match direction {
        "up" => Direction::Up,
        "down" => Direction::Down,
        other => return Err(format!("`cloud {other}`: expected up or down: {usage}")),
    };
    let cloud = Cloud::named(cloud).ok_or_else(|| format!("there is no cloud `{cloud}`: {usage}"))?;
    Ok(Task::Cloud { direction, cloud })
}

fn fuzz(words: &[String]) -> Result<Task, String> {
    let mut fuzz = Fuzz::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--minutes" => fuzz.minutes = Some(minutes(words.next().map(String::as_str))?),
            flag if flag.starts_with('-') => return Err(format!("`fuzz` does not know `{flag}`")),
            target if fuzz.target.is_none() => fuzz.target = Some(target.to_owned()),
            more => return Err(format!("`fuzz` takes one target, got `{more}` as well")),
        }
    }
    Ok(Task::Fuzz(fuzz))
}

/// The value of `--minutes`: a day is long enough for everybody.
fn minutes(word: Option<&str>) -> Result<u64, String> {
    let minutes = word.and_then(|word| word.parse().ok()).filter(|minutes| (1..=1440).contains(minutes));
    minutes.ok_or_else(|| "`--minutes` needs a number from 1 to 1440".to_owned())
}

fn guest(words: &[String]) -> Result<Task, String> {
    match words {
        [directory] if !directory.starts_with('-') => Ok(Task::Guest { directory: directory.into() }),
        [flag] => Err(format!("`guest` does not know `{flag}`")),
        [] => Err("`guest` needs the directory of the guest's crate: cargo xtask guest DIR".to_owned()),
        [_, more, ..] => Err(format!("`guest` takes one directory, got `{more}` as well")),
    }
}

fn job(words: &[String]) -> Result<Task, String> {
    let mut job = Job::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("`{word}` needs {what}"));
        match word.as_str() {
            "--guest" => job.guest = Some(value("the path of a .wasm file or a guest's name")?.into()),
            "--cloud" => {
                let name = value("sim or openstack")?;
                job.cloud =
                    Some(Cloud::named(name).ok_or_else(|| format!("`--cloud {name}`: expected sim or openstack"))?);
            }
            "--policy" => job.policy = Some(value("the path of a policy.json")?.into()),
            "--properties" => job.properties = Some(value("a JSON object or the path of a file")?.clone()),
            "--allow-local" => job.allow_local = true,
            "--no-build" => job.no_build = true,
            flag if flag.starts_with('-') => return Err(format!("`job` does not know `{flag}`")),
            path if job.out.as_os_str().is_empty() => job.out = PathBuf::from(path),
            more => return Err(format!("`job` takes one directory, got `{more}` as well")),
        }
    }
    if job.out.as_os_str().is_empty() {
        return Err("`job` needs the directory to write to: cargo xtask job OUT".to_owned());
    }
    if job.cloud.is_some() && job.guest.as_deref() != Some(Path::new("openstack")) {
        return Err("`--cloud` goes with `--guest openstack` alone".to_owned());
    }
    if job.cloud.is_some() && (job.policy.is_some() || job.properties.is_some()) {
        return Err("`--cloud` brings policy and properties: leave `--policy` and `--properties` out".to_owned());
    }
    Ok(Task::Job(job))
}

fn release(words: &[String]) -> Result<Task, String> {
    let mut release = Release::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--version" => release.version = Some(version(words.next().map(String::as_str))?),
            "--out" => release.out = Some(words.next().ok_or("`--out` needs a directory")?.into()),
            "--no-build" => release.no_build = true,
            other => return Err(format!("`release` does not know `{other}`")),
        }
    }
    Ok(Task::Release(release))
}

/// It becomes part of file names and of YAML.
fn version(word: Option<&str>) -> Result<String, String> {
    let usual = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    let version = word.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(usual));
    version.map(str::to_owned).ok_or_else(|| "`--version` needs a version like 1.2.0".to_owned())
}

fn test(words: &[String]) -> Result<Task, String> {
    let mut test = Test::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => test.quick = true,
            "--only" => test.only = Some(part(words.next().map(String::as_str))?),
            "--without" => match words.next().map(String::as_str) {
                Some("openstack") => test.without_openstack = true,
                _ => return Err("`--without` needs what to leave out: openstack".to_owned()),
            },
            "--" => test.rest = words.by_ref().cloned().collect(),
            other => return Err(format!("`test` does not know `{other}`; a filter goes after `--`")),
        }
    }
    if test.quick && (test.only.is_some() || test.without_openstack) {
        return Err("`--quick` chooses what to run: leave `--only` and `--without` out".to_owned());
    }
    Ok(Task::Test(test))
}

fn part(word: Option<&str>) -> Result<Part, String> {
    match word {
        Some("lint") => Ok(Part::Lint),
        Some("unit") => Ok(Part::Unit),
        Some("guests") => Ok(Part::Guests),
        Some("it") => Ok(Part::Integration),
        Some("attack") => Ok(Part::Attack),
        Some(other) => Err(format!("`--only {other}`: expected lint, unit, guests, it or attack")),
        None => Err("`--only` needs one of lint, unit, guests, it, attack".to_owned()),
    }
}

#[cfg(test)]
mod tests;
