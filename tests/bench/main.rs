//! `bench`: the runtime beside native programs that do the same, in one run.
//!
//! `cargo xtask bench` builds everything and starts this. Times of different runs
//! cannot be compared, so what is compared is compared within one, and
//! takes turns (`rounds`). It prints a table, and leaves it as JSON and a chart.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is for people")]

mod chart;
mod growth;
mod https;
mod program;
mod report;
mod rounds;
mod starts;
mod stemcell;
mod throughput;

use report::Report;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is measured, how long, and where the peers are.
pub(crate) struct Bench {
    quick: bool,
    /// As `cargo xtask job` lays it out, with the probe.
    job: PathBuf,
    /// Holds `peer-echo`, `peer-https`, `peer-go` and `cpi.rb`.
    peers: PathBuf,
    /// For requests and images; gone at the end.
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
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let done = match words.split_first() {
        Some((first, rest)) if first == Path::new(program::ALONE) => {
            program::alone(rest).map(|()| 0).map_err(|error| error.to_string())
        }
        _ => parsed(&words).and_then(|(bench, out)| run(&bench, &out)),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("bench: {missed} bars were missed");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}

/// `[--quick] JOB PEERS OUT`
fn parsed(words: &[PathBuf]) -> Result<(Bench, PathBuf), String> {
    let quick = words.iter().any(|word| word == Path::new("--quick"));
    let rest: Vec<&PathBuf> = words.iter().filter(|word| **word != Path::new("--quick")).collect();
    let [job, peers, out] = rest.as_slice() else {
        return Err("usage: bench [--quick] JOB PEERS OUT; `cargo xtask bench` starts it".to_owned());
    };
    let files = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    Ok((Bench { quick, job: (*job).clone(), peers: (*peers).clone(), files }, (*out).clone()))
}

/// How many bars were missed.
fn run(bench: &Bench, out: &Path) -> Result<usize, String> {
    let mut report = Report::default();
    for (name, part) in [
        ("starts", starts::measure as fn(&Bench, &mut Report) -> Result<(), String>),
        ("https", https::measure),
        ("throughput", throughput::measure),
        ("stemcell", stemcell::measure),
        ("growth", growth::measure),
    ] {
        eprintln!("measuring: {name}");
        part(bench, &mut report)?;
    }
    println!("{}", report.text());
    tests::job::write(&out.join("bench.json"), format!("{:#}\n", report.json()).as_bytes());
    tests::job::write(&out.join("bench.svg"), chart::svg(report.figures()).as_bytes());
    Ok(report.missed())
}
