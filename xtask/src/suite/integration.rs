//! The integration tests, against the shipped programs on every cloud, or against
//! others on the simulator alone.

use super::run_tests;
use crate::build;
use crate::cloud::openstack::{self, Guard};
use crate::release::render;
use crate::repo::Repo;
use crate::setup;
use crate::skips::Reports;
use crate::steps::{Steps, joined};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

/// Names the `cloud.json` of the real cloud for the tests.
const OPENSTACK: &str = "WASM_CPI_OPENSTACK";

/// How many tests run at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// What the tests run beside our programs, by the package that has it.
const TOOLS: [(&str, &str); 1] = [("valgrind", "valgrind")];

/// What the tests are run against.
pub(super) struct Against<'a> {
    pub(super) dist: &'a Path,
    /// The `cloud.json` of real services; the simulator is always there.
    pub(super) openstack: Option<&'a Path>,
}

/// Builds the test program and runs it.
pub(super) fn run(repo: &Repo, against: &Against<'_>, reports: &Reports, rest: &[String]) -> Result<()> {
    let mut cargo = repo.cargo_static("test");
    cargo.args(["--release", "--package", "tests", "--lib", "--test", "it", "--no-fail-fast"]);
    cargo.env(build::DIST, against.dist).env(build::HOLES, repo.holes());
    match against.openstack {
        Some(cloud) => cargo.env(OPENSTACK, cloud),
        None => cargo.env_remove(OPENSTACK),
    };
    if std::env::var_os(THREADS).is_none() {
        cargo.env(THREADS, threads().to_string());
    }
    reports.collect_from(&mut cargo);
    run_tests(&mut cargo, rest)
}

/// Tests of programs wait more than they compute.
fn threads() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// The steps of the full suite, once the tools and the real cloud are there.
pub(super) fn steps(
    repo: &Repo,
    steps: &mut Steps,
    rest: &[String],
    reports: &Reports,
    surroundings: ScopedJoinHandle<'_, Result<Surroundings>>,
) {
    // Without them the tests that need them say so.
    steps.check("build the programs with holes", || build::holes(repo));
    let (tools, cloud) = joined(surroundings).unwrap_or_else(|error| (Err(error), None));
    steps.check("what was left of installing tools", || tools);
    // Where it cannot start, that is a failure, and the simulator is tested alone.
    let cloud = cloud.and_then(|cloud| steps.need("real OpenStack", || cloud).ok());
    steps.check("integration tests", || {
        let file = cloud.as_ref().map(|cloud| cloud.file.as_path());
        run(repo, &Against { dist: &repo.dist(), openstack: file }, reports, rest)
    });
    if let Some(guard) = cloud.and_then(|cloud| cloud.guard) {
        steps.check("end of the real OpenStack", || {
            openstack::down(repo)?;
            guard.dismiss()
        });
    }
}

/// What integration tests find beside our programs: tools, installed; and the real
/// cloud, started, if it is wanted.
pub(super) fn surroundings(repo: &Repo, with_openstack: bool) -> Result<Surroundings> {
    let tools = render::setup().and_then(|()| setup::tools(&TOOLS));
    let cloud = with_openstack.then(|| real_openstack(repo));
    Ok((tools, cloud))
}

pub(super) type Surroundings = (Result<()>, Option<Result<RealCloud>>);

pub(super) struct RealCloud {
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
