//! The arguments of `cargo xtask`, and the help text.
//!
//! They are parsed by hand: an argument parser would have to be compiled before the
//! first build can start, and a few subcommands do not justify that.

use std::path::{Path, PathBuf};

pub(crate) const HELP: &str = include_str!("arguments/help.txt");

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
    AwsSim,
    Moto,
    Openstack,
    Sim,
}

impl Cloud {
    const ALL: [Cloud; 4] = [Cloud::AwsSim, Cloud::Moto, Cloud::Openstack, Cloud::Sim];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Cloud::AwsSim => "aws-sim",
            Cloud::Moto => "moto",
            Cloud::Openstack => "openstack",
            Cloud::Sim => "sim",
        }
    }

    fn named(name: &str) -> Option<Cloud> {
        Cloud::ALL.into_iter().find(|cloud| cloud.name() == name)
    }

    /// Returns true for the clouds that the guest `openstack` can use.
    fn is_openstack(self) -> bool {
        matches!(self, Cloud::Openstack | Cloud::Sim)
    }
}

/// Whether to start or to stop a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// The attacks to run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attack {
    /// Run mutation tests instead of attacks.
    pub(crate) mutants: bool,
    /// The time of the fuzz targets.
    pub(crate) minutes: Option<u64>,
    /// An attack runs if its name contains one of these; if there are none, all attacks run.
    pub(crate) filters: Vec<String>,
}

/// The job to lay out, and its inputs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) out: PathBuf,
    /// The path of a file, or the name of a guest of the repository.
    pub(crate) guest: Option<PathBuf>,
    /// The running cloud that the job uses.
    pub(crate) cloud: Option<Cloud>,
    pub(crate) policy: Option<PathBuf>,
    /// Replace the policy of a job that exists.
    pub(crate) replace: bool,
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

/// The tests to run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) quick: bool,
    pub(crate) only: Option<Part>,
    pub(crate) without_openstack: bool,
    /// The arguments for the test programs.
    pub(crate) rest: Vec<String>,
}

/// The fuzz target, and for how long it runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fuzz {
    pub(crate) target: Option<String>,
    pub(crate) minutes: Option<u64>,
}

/// What to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bench {
    pub(crate) quick: bool,
    /// Measure connections, logins and times on a network with latency.
    pub(crate) wire: bool,
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
    Messages,
    Release(Release),
    Test(Test),
    Tidy,
}

/// Returns the task that the arguments name, or a message about the first wrong one.
pub(crate) fn parse(arguments: &[String]) -> Result<Task, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Ok(Task::Help);
    };
    // Arguments after `--` are for the test programs.
    let mut own = rest.iter().take_while(|argument| *argument != "--");
    if matches!(command.as_str(), "-h" | "--help" | "help") || own.any(|own| own == "-h" || own == "--help") {
        return Ok(Task::Help);
    }
    match command.as_str() {
        "setup" => without_arguments(Task::Setup, command, rest),
        "build" => without_arguments(Task::Build, command, rest),
        "demo" => without_arguments(Task::Demo, command, rest),
        "messages" => without_arguments(Task::Messages, command, rest),
        "tidy" => without_arguments(Task::Tidy, command, rest),
        "attack" => attack(rest),
        "bench" => bench(rest),
        "cloud" => cloud(rest),
        "fuzz" => fuzz(rest),
        "guest" => guest(rest),
        "job" => job(rest),
        "release" => release(rest),
        "test" => test(rest),
        other => Err(format!("unknown command `{other}`; `cargo xtask --help` lists all commands")),
    }
}

fn without_arguments(task: Task, command: &str, rest: &[String]) -> Result<Task, String> {
    match rest.first() {
        None => Ok(task),
        Some(argument) => Err(format!("`{command}` takes no arguments, got `{argument}`: remove it")),
    }
}

/// Returns the error about an option that a command does not have.
fn unknown_option<T>(command: &str, option: &str) -> Result<T, String> {
    Err(format!("`{command}` has no option `{option}`; `cargo xtask --help` lists all options"))
}

fn bench(arguments: &[String]) -> Result<Task, String> {
    let mut bench = Bench::default();
    for argument in arguments {
        match argument.as_str() {
            "--quick" => bench.quick = true,
            "--wire" => bench.wire = true,
            other => return unknown_option("bench", other),
        }
    }
    Ok(Task::Bench(bench))
}

fn attack(arguments: &[String]) -> Result<Task, String> {
    let mut attack = Attack::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--mutants" => attack.mutants = true,
            "--minutes" => attack.minutes = Some(minutes(arguments.next().map(String::as_str))?),
            flag if flag.starts_with('-') => return unknown_option("attack", flag),
            filter => attack.filters.push(filter.to_owned()),
        }
    }
    match attack {
        Attack { mutants: true, minutes: Some(_), .. } => {
            Err("`--minutes` is the time of the fuzz targets, which `--mutants` does not run: leave out one of the two"
                .to_owned())
        }
        attack => Ok(Task::Attack(attack)),
    }
}

fn cloud(arguments: &[String]) -> Result<Task, String> {
    let usage = "cargo xtask cloud up|down aws-sim|moto|openstack|sim";
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (direction, cloud) = match arguments.as_slice() {
        [direction, cloud] => (*direction, *cloud),
        [_, _, more, ..] => return Err(format!("`cloud` takes two arguments, got `{more}` as well: {usage}")),
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

fn fuzz(arguments: &[String]) -> Result<Task, String> {
    let mut fuzz = Fuzz::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--minutes" => fuzz.minutes = Some(minutes(arguments.next().map(String::as_str))?),
            flag if flag.starts_with('-') => return unknown_option("fuzz", flag),
            target if fuzz.target.is_none() => fuzz.target = Some(target.to_owned()),
            more => return Err(format!("`fuzz` takes one target, got `{more}` as well")),
        }
    }
    Ok(Task::Fuzz(fuzz))
}

/// Returns the value of `--minutes`, at most one day.
fn minutes(argument: Option<&str>) -> Result<u64, String> {
    let minutes = argument.and_then(|text| text.parse().ok()).filter(|minutes| (1..=1440).contains(minutes));
    minutes.ok_or_else(|| format!("`--minutes` needs a number from 1 to 1440, got {}", found(argument)))
}

/// Shows what was found in place of an option's value.
fn found(argument: Option<&str>) -> String {
    argument.map_or_else(|| "nothing".to_owned(), |argument| format!("`{argument}`"))
}

fn guest(arguments: &[String]) -> Result<Task, String> {
    match arguments {
        [directory] if !directory.starts_with('-') => Ok(Task::Guest { directory: directory.into() }),
        [flag] => unknown_option("guest", flag),
        [] => Err("`guest` needs the directory of the guest's crate: cargo xtask guest DIR".to_owned()),
        [_, more, ..] => Err(format!("`guest` takes one directory, got `{more}` as well")),
    }
}

fn job(arguments: &[String]) -> Result<Task, String> {
    let mut job = Job::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = |what: &str| arguments.next().ok_or_else(|| format!("`{argument}` needs {what}"));
        match argument.as_str() {
            "--guest" => job.guest = Some(value("the path of a .wasm file or the name of a guest")?.into()),
            "--cloud" => {
                let name = value("sim or openstack")?;
                let cloud = Cloud::named(name).filter(|cloud| cloud.is_openstack());
                job.cloud = Some(cloud.ok_or_else(|| format!("`--cloud {name}`: expected sim or openstack"))?);
            }
            "--policy" => job.policy = Some(value("the path of a policy.json")?.into()),
            "--replace" => job.replace = true,
            "--properties" => job.properties = Some(value("a JSON object or the path of a file")?.clone()),
            "--allow-local" => job.allow_local = true,
            "--no-build" => job.no_build = true,
            flag if flag.starts_with('-') => return unknown_option("job", flag),
            path if job.out.as_os_str().is_empty() => job.out = PathBuf::from(path),
            more => return Err(format!("`job` takes one directory, got `{more}` as well")),
        }
    }
    if job.out.as_os_str().is_empty() {
        return Err("`job` needs the directory to write to: cargo xtask job OUT".to_owned());
    }
    if job.cloud.is_some() && job.guest.as_deref() != Some(Path::new("openstack")) {
        return Err("`--cloud` works with the guest `openstack` only: add `--guest openstack`".to_owned());
    }
    if job.cloud.is_some() && (job.policy.is_some() || job.properties.is_some()) {
        return Err("`--cloud` sets policy and properties: leave out `--policy` and `--properties`".to_owned());
    }
    Ok(Task::Job(job))
}

fn release(arguments: &[String]) -> Result<Task, String> {
    let mut release = Release::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--version" => release.version = Some(version(arguments.next().map(String::as_str))?),
            "--out" => release.out = Some(arguments.next().ok_or("`--out` needs a directory")?.into()),
            "--no-build" => release.no_build = true,
            other => return unknown_option("release", other),
        }
    }
    Ok(Task::Release(release))
}

/// Returns the value of `--version`. It becomes part of file names and of YAML, so only some characters are accepted.
fn version(argument: Option<&str>) -> Result<String, String> {
    let usual = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    let version = argument.filter(|text| text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(usual));
    version.map(str::to_owned).ok_or_else(|| format!("`--version` needs a version like 1.2.0, got {}", found(argument)))
}

fn test(arguments: &[String]) -> Result<Task, String> {
    let mut test = Test::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => test.quick = true,
            "--only" => test.only = Some(part(arguments.next().map(String::as_str))?),
            "--without" => match arguments.next().map(String::as_str) {
                Some("openstack") => test.without_openstack = true,
                other => return Err(format!("`--without` needs the value openstack, got {}", found(other))),
            },
            "--" => test.rest = arguments.by_ref().cloned().collect(),
            other => return Err(format!("`test` has no option `{other}`; a filter goes after `--`")),
        }
    }
    if test.quick && (test.only.is_some() || test.without_openstack) {
        return Err("`--quick` chooses what to run: leave out `--only` and `--without`".to_owned());
    }
    Ok(Task::Test(test))
}

fn part(argument: Option<&str>) -> Result<Part, String> {
    match argument {
        Some("lint") => Ok(Part::Lint),
        Some("unit") => Ok(Part::Unit),
        Some("guests") => Ok(Part::Guests),
        Some("it") => Ok(Part::Integration),
        Some("attack") => Ok(Part::Attack),
        Some(other) => Err(format!("`--only {other}`: expected lint, unit, guests, it or attack")),
        None => Err("`--only` needs one of lint, unit, guests, it, attack; got nothing".to_owned()),
    }
}

#[cfg(test)]
mod tests;
