//! The words after `cargo xtask`, and the help text.
//!
//! Parsed by hand: six subcommands do not pay for an argument parser that would
//! have to be compiled before the first build can start.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
cargo xtask: builds, shows, packages and tests wasm-cpi

Usage: cargo xtask <COMMAND>

The two to begin with:
  demo               Set up, build, and run requests as the Director sends them
                     through the built binary: request, response, time
  test [OPTIONS]     Set up, build, and run everything that must be green
      --only PART    lint    tidy, format, clippy, dependencies
                     unit    unit tests of runtime and xtask
                     guests  unit tests of the guests, natively
                     it      integration tests against the built binaries
      -- ARGS...     Passed to the test programs, e.g. a filter

On the way there:
  setup              Install what building guests needs, or say what is missing
  build              Build both binaries and all guests into target/dist
  job OUT [OPTIONS]  Lay out a CPI job that a Director or the CLI can run as
                     OUT/bin/cpi. An existing job keeps its configuration; only
                     programs, guest and the guest's pin are renewed
      --guest FILE   The guest to run (default: the probe guest)
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
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Setup,
    Build,
    Demo,
    Job { out: PathBuf, guest: Option<PathBuf> },
    Test { only: Option<Part>, rest: Vec<String> },
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
        "job" => job(rest),
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

fn job(words: &[String]) -> Result<Task, String> {
    let (mut out, mut guest) = (None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--guest" => {
                let file = words.next().ok_or("`--guest` needs the path of a .wasm file")?;
                guest = Some(PathBuf::from(file));
            }
            flag if flag.starts_with('-') => return Err(format!("`job` does not know `{flag}`")),
            path if out.is_none() => out = Some(PathBuf::from(path)),
            more => return Err(format!("`job` takes one directory, got `{more}` as well")),
        }
    }
    let out = out.ok_or("`job` needs the directory to write to: cargo xtask job OUT")?;
    Ok(Task::Job { out, guest })
}

fn test(words: &[String]) -> Result<Task, String> {
    let (mut only, mut rest) = (None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--only" => only = Some(part(words.next().map(String::as_str))?),
            "--" => rest = words.by_ref().cloned().collect(),
            other => return Err(format!("`test` does not know `{other}`; a filter goes after `--`")),
        }
    }
    Ok(Task::Test { only, rest })
}

fn part(word: Option<&str>) -> Result<Part, String> {
    match word {
        Some("lint") => Ok(Part::Lint),
        Some("unit") => Ok(Part::Unit),
        Some("guests") => Ok(Part::Guests),
        Some("it") => Ok(Part::Integration),
        Some(other) => Err(format!("`--only {other}`: expected lint, unit, guests or it")),
        None => Err("`--only` needs one of lint, unit, guests, it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn every_form_is_understood() {
        let job = |guest: Option<&str>| Task::Job { out: "out".into(), guest: guest.map(PathBuf::from) };
        let test = |only, rest: &[&str]| Task::Test { only, rest: rest.iter().map(|&w| w.to_owned()).collect() };
        for (line, task) in [
            ("", Task::Help),
            ("--help", Task::Help),
            ("job --help", Task::Help),
            ("setup", Task::Setup),
            ("build", Task::Build),
            ("demo", Task::Demo),
            ("tidy", Task::Tidy),
            ("job out", job(None)),
            ("job out --guest g.wasm", job(Some("g.wasm"))),
            ("job --guest g.wasm out", job(Some("g.wasm"))),
            ("test", test(None, &[])),
            ("test --only it", test(Some(Part::Integration), &[])),
            ("test --only unit -- policy --nocapture", test(Some(Part::Unit), &["policy", "--nocapture"])),
            ("test -- --help", test(None, &["--help"])),
        ] {
            assert_eq!(parsed(line), Ok(task), "{line}");
        }
    }

    #[test]
    fn a_mistake_is_named() {
        for (line, named) in [
            ("tset", "tset"),
            ("build --fast", "--fast"),
            ("job", "OUT"),
            ("job a b", "`b`"),
            ("job a --gest x", "--gest"),
            ("job a --guest", ".wasm"),
            ("test policy", "policy"),
            ("test --only", "lint"),
            ("test --only all", "all"),
        ] {
            let problem = parsed(line).expect_err(line);
            assert!(problem.contains(named), "{line}: {problem}");
        }
    }
}
