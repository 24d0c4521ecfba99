//! `bench`: compares the runtime with native programs that do the same.
//!
//! `cargo xtask bench` builds everything and starts this program. Times of different
//! runs are not comparable, so all programs run in turns within one run (`rounds`).
//! The result is printed as a table and written as JSON and as a chart.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "prints the table for the user")]

mod chart;
mod https;
mod program;
mod report;
mod rounds;
mod scaling;
mod startup;
mod stemcell;
mod throughput;

use report::Report;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The settings of a run.
pub(crate) struct Bench {
    quick: bool,
    /// The directory of a job with the probe, as `cargo xtask job` creates it.
    job: PathBuf,
    /// The directory of `peer-echo`, `peer-https`, `peer-go` and `cpi.rb`.
    peers: PathBuf,
    /// A temporary directory for requests and images.
    files: tempfile::TempDir,
}

impl Bench {
    fn rounds(&self) -> usize {
        if self.quick { 60 } else { 400 }
    }

    fn peer(&self, name: &str) -> PathBuf {
        self.peers.join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files.path().join(name);
        tests::job::write(&path, content.as_ref());
        path
    }
}

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == Path::new(program::PEAK_MEMORY) => {
            program::measure_peak_memory(rest).map(|()| 0).map_err(|error| error.to_string())
        }
        _ => parse(&arguments).and_then(|(bench, out)| run(&bench, &out)),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("bench: {missed} targets were missed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses `[--quick] JOB PEERS OUT`.
fn parse(arguments: &[PathBuf]) -> Result<(Bench, PathBuf), String> {
    let quick = arguments.iter().any(|argument| argument == Path::new("--quick"));
    let rest: Vec<&PathBuf> = arguments.iter().filter(|argument| **argument != Path::new("--quick")).collect();
    let [job, peers, out] = rest.as_slice() else {
        return Err("usage: bench [--quick] JOB PEERS OUT; `cargo xtask bench` starts it".to_owned());
    };
    let files = tempfile::tempdir().map_err(|error| format!("cannot create a temporary directory: {error}"))?;
    Ok((Bench { quick, job: (*job).clone(), peers: (*peers).clone(), files }, (*out).clone()))
}

/// Measures everything and returns how many targets were missed.
fn run(bench: &Bench, out: &Path) -> Result<usize, String> {
    let mut report = Report::default();
    for (name, part) in [
        ("startup", startup::measure as fn(&Bench, &mut Report) -> Result<(), String>),
        ("https", https::measure),
        ("throughput", throughput::measure),
        ("stemcell", stemcell::measure),
        ("scaling", scaling::measure),
    ] {
        eprintln!("measuring: {name}");
        part(bench, &mut report)?;
    }
    println!("{}", report.text());
    tests::job::write(&out.join("bench.json"), format!("{:#}\n", report.json()).as_bytes());
    tests::job::write(&out.join("bench.svg"), chart::svg(report.figures()).as_bytes());
    Ok(report.missed())
}
