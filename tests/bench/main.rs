//! `bench`: compares the runtime with native programs that do the same.
//!
//! `cargo xtask bench` builds everything and starts this program. Times of different
//! runs are not comparable, so all programs run in turns within one run (`rounds`).
//! With `--wire` it measures connections, logins and times on a network with latency.
//! The result is printed as a table and written as JSON and as a chart.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "prints the table for the user")]

mod chart;
mod discard;
mod https;
mod program;
mod report;
mod rounds;
mod scaling;
mod startup;
mod stemcell;
mod throughput;
mod wire;

use report::Report;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The settings of a run.
pub(crate) struct Bench {
    quick: bool,
    /// Measure calls on a network with latency instead.
    wire: bool,
    /// The directory for the figures. It has the directory `peers` with the other programs, and, unless
    /// `wire` is true, the directory `job` with a job of the probe, as `cargo xtask job` creates it.
    out: PathBuf,
    /// A temporary directory for requests and images.
    files: tempfile::TempDir,
}

/// Measures something and adds the figures to the report.
type Part = (&'static str, fn(&Bench, &mut Report) -> Result<(), String>);

const PARTS: [Part; 5] = [
    ("startup", startup::measure),
    ("https", https::measure),
    ("throughput", throughput::measure),
    ("stemcell", stemcell::measure),
    ("scaling", scaling::measure),
];

impl Bench {
    fn rounds(&self) -> usize {
        if self.quick { 60 } else { 400 }
    }

    fn peer(&self, name: &str) -> PathBuf {
        self.out.join("peers").join(name)
    }

    fn job(&self) -> PathBuf {
        self.out.join("job")
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
        _ => parse(&arguments).and_then(|bench| run(&bench)),
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

/// Parses `[--wire] [--quick] OUT`.
fn parse(arguments: &[PathBuf]) -> Result<Bench, String> {
    const FLAGS: [&str; 2] = ["--quick", "--wire"];
    let [quick, wire] = FLAGS.map(|flag| arguments.iter().any(|argument| argument == Path::new(flag)));
    let is_flag = |argument: &Path| FLAGS.iter().any(|flag| argument == Path::new(flag));
    let rest: Vec<&PathBuf> = arguments.iter().filter(|argument| !is_flag(argument)).collect();
    let [out] = rest.as_slice() else {
        return Err("usage: bench [--wire] [--quick] OUT; `cargo xtask bench` starts it".to_owned());
    };
    let files = tempfile::tempdir().map_err(|error| format!("cannot create a temporary directory: {error}"))?;
    Ok(Bench { quick, wire, out: (*out).clone(), files })
}

/// Measures everything and returns how many targets were missed.
fn run(bench: &Bench) -> Result<usize, String> {
    let mut report = Report::default();
    let (file, parts) = if bench.wire { ("wire", &wire::PARTS[..]) } else { ("bench", &PARTS[..]) };
    for (name, part) in parts {
        eprintln!("measuring: {name}");
        part(bench, &mut report)?;
    }
    println!("{}", report.text());
    let out = |extension: &str| bench.out.join(file).with_extension(extension);
    tests::job::write(&out("json"), format!("{:#}\n", report.json()).as_bytes());
    tests::job::write(&out("svg"), chart::svg(report.figures()).as_bytes());
    Ok(report.missed())
}
