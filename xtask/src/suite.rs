//! `cargo xtask test`: everything that must be green, in both workspaces.
//!
//! Set-up and build come first, for what needs them. After that a failure does
//! not hide the next: every step runs, and the summary tells them all. What was
//! left out on demand is told in the last line.

use crate::arguments::{Part, Test};
use crate::attack;
use crate::build;
use crate::cloud::openstack::{self, Guard};
use crate::command;
use crate::deny;
use crate::fuzz;
use crate::release::render;
use crate::repo::Repo;
use crate::setup;
use crate::steps::{Steps, joined};
use crate::tidy;
use anyhow::{Result, anyhow};
use std::path::PathBuf;
use std::thread::{self, ScopedJoinHandle};

/// Names the `cloud.json` of the real cloud for the tests.
const OPENSTACK: &str = "WASM_CPI_OPENSTACK";

/// How many tests run at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Tests of programs wait more than they compute.
fn threads() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// What the tests run beside our programs, by the package that has it.
const TOOLS: [(&str, &str); 1] = [("valgrind", "valgrind")];

pub(crate) fn run(repo: &Repo, test: &Test) -> Result<()> {
    let done = parts(repo, test);
    if test.without_openstack {
        return without_openstack(done);
    }
    done
}

/// The last line is what it must be, whatever became of the rest.
fn without_openstack(done: Result<()>) -> Result<()> {
    const LINE: &str = "NOT RUN: openstack";
    match done {
        Ok(()) => eprintln!("{LINE}"),
        Err(error) => return Err(anyhow!("{error:#}\n{LINE}")),
    }
    Ok(())
}

fn parts(repo: &Repo, test: &Test) -> Result<()> {
    let Test { only, rest, .. } = test;
    let wanted = |part: Part| only.is_none_or(|only| only == part);
    let mut steps = Steps::new();
    let built = thread::scope(|threads| {
        // What others wait for is built and started beside what they do not need.
        let deny = wanted(Part::Lint).then(|| threads.spawn(|| deny::install(repo)));
        if wanted(Part::Integration) || wanted(Part::Attack) {
            build::everything(repo, &mut steps)?;
        }
        if let Some(deny) = deny {
            lint(repo, &mut steps, deny);
        }
        let surroundings = wanted(Part::Integration).then(|| threads.spawn(|| surroundings(repo, test)));
        if wanted(Part::Unit) {
            unit(repo, &mut steps, rest);
        }
        if wanted(Part::Guests) {
            steps.check("unit tests: guests", || run_tests(repo.cargo_guests("test").arg("--workspace"), rest));
        }
        if let Some(surroundings) = surroundings {
            integration(repo, &mut steps, rest, surroundings);
        }
        if wanted(Part::Attack) {
            attacks(repo, &mut steps, *only, rest);
        }
        Ok(())
    });
    built.and(steps.finish())
}

fn integration(
    repo: &Repo,
    steps: &mut Steps,
    rest: &[String],
    surroundings: ScopedJoinHandle<'_, Result<Surroundings>>,
) {
    // Without them the tests that need them say so.
    steps.check("build the programs with holes", || build::holes(repo));
    let (tools, cloud) = joined(surroundings).unwrap_or_else(|error| (Err(error), None));
    steps.check("what was left of installing tools", || tools);
    // Where it cannot start, that is a failure, and the simulator is tested alone.
    let cloud = cloud.and_then(|cloud| steps.need("real OpenStack", || cloud).ok());
    steps.check("integration tests", || {
        let mut cargo = repo.cargo_static("test");
        cargo.args(["--release", "--package", "tests", "--lib", "--test", "it", "--no-fail-fast"]);
        cargo.env(build::DIST, repo.dist()).env(build::HOLES, repo.holes());
        match &cloud {
            Some(cloud) => cargo.env(OPENSTACK, &cloud.file),
            None => cargo.env_remove(OPENSTACK),
        };
        if std::env::var_os(THREADS).is_none() {
            cargo.env(THREADS, threads().to_string());
        }
        run_tests(&mut cargo, rest)
    });
    if let Some(guard) = cloud.and_then(|cloud| cloud.guard) {
        steps.check("end of the real OpenStack", || {
            openstack::down(repo)?;
            guard.dismiss()
        });
    }
}

/// What integration tests find beside our programs: tools, installed; and the real
/// cloud, started, unless nobody wants it.
fn surroundings(repo: &Repo, test: &Test) -> Result<Surroundings> {
    let tools = render::setup().and_then(|()| setup::tools(&TOOLS));
    let cloud = (!test.without_openstack).then(|| real_openstack(repo));
    Ok((tools, cloud))
}

type Surroundings = (Result<()>, Option<Result<RealCloud>>);

struct RealCloud {
    file: PathBuf,
    /// Of one that ends with us, however we end; one that was up before stays up.
    guard: Option<Guard>,
}

fn real_openstack(repo: &Repo) -> Result<RealCloud> {
    let was_up = openstack::is_up(repo)?;
    let file = openstack::up(repo)?;
    let guard = if was_up { None } else { Some(openstack::guard(repo)?) };
    Ok(RealCloud { file, guard })
}

/// A filter for tests of all kinds need not be the name of an attack, and is none
/// of a fuzz target.
fn attacks(repo: &Repo, steps: &mut Steps, only: Option<Part>, rest: &[String]) {
    if rest.is_empty() || only == Some(Part::Attack) {
        steps.check("attacks", || attack::corpus(repo, &repo.dist(), rest));
    }
    if rest.is_empty() {
        steps.check("fuzz targets", || fuzz::test(repo));
    }
}

fn lint(repo: &Repo, steps: &mut Steps, deny: ScopedJoinHandle<'_, Result<PathBuf>>) {
    steps.check("tidy", || tidy::run(&repo.root));
    steps.check("format: runtime", || command::run(command::new("cargo").current_dir(&repo.root).args(FORMAT)));
    steps.check("format: guests", || command::run(command::new("cargo").current_dir(repo.guests()).args(FORMAT)));
    steps.check("clippy: runtime", || {
        let mut cargo = repo.cargo_static("clippy");
        // All there is: the next step sees what it would be without.
        let features = "wasm-cpi/compiler,wasm-cpi/holes,fuzz/engine";
        cargo.args(["--release", "--workspace", "--features", features, "--all-targets"]);
        command::run(cargo.args(DENY_WARNINGS))
    });
    steps.check("clippy: runtime without compiler and holes", || {
        let mut cargo = repo.cargo_static("clippy");
        command::run(cargo.args(["--release", "--package", "wasm-cpi"]).args(DENY_WARNINGS))
    });
    steps.check("clippy: guests", || {
        command::run(repo.cargo_guests("clippy").args(["--workspace", "--all-targets"]).args(DENY_WARNINGS))
    });
    let Ok(deny) = steps.need("cargo-deny, what was left of its build", || joined(deny)) else { return };
    for (name, manifest) in MANIFESTS {
        steps.check(&format!("dependencies: {name}"), || deny::dependencies(repo, &deny, manifest));
    }
    steps.check_if_possible("advisories", || deny::advisories(repo, &deny, &MANIFESTS.map(|(_, manifest)| manifest)));
}

fn unit(repo: &Repo, steps: &mut Steps, rest: &[String]) {
    steps.check("unit tests: runtime", || {
        let mut cargo = repo.cargo_static("test");
        // Dependencies as they ship, and no time spent on optimising test code.
        cargo.args(["--release", "--config", "profile.release.package.wasm-cpi.opt-level=0"]);
        run_tests(cargo.args(["--package", "wasm-cpi", "--lib", "--features", "compiler"]), rest)
    });
    steps.check("unit tests: xtask", || {
        render::setup()?;
        run_tests(repo.cargo("test").args(["--package", "xtask"]), rest)
    });
}

fn run_tests(cargo: &mut std::process::Command, rest: &[String]) -> Result<()> {
    command::run(cargo.arg("--").args(rest))
}

const FORMAT: [&str; 3] = ["fmt", "--all", "--check"];
const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];
const MANIFESTS: [(&str, &str); 3] =
    [("runtime", "Cargo.toml"), ("guests", "guests/Cargo.toml"), ("fuzzer", "tests/fuzz/engine/Cargo.toml")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_told_in_the_last_line_of_a_failure_too() {
        let error = without_openstack(Err(anyhow!("1 of 2 steps failed"))).unwrap_err();
        assert_eq!(format!("{error:#}").lines().last(), Some("NOT RUN: openstack"));
        without_openstack(Ok(())).unwrap();
    }
}
