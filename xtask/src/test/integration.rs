//! Runs the integration tests: with the shipped programs on every cloud, or with other
//! programs on the simulator only.

use super::run_tests;
use crate::build;
use crate::cloud::moto;
use crate::cloud::openstack::{self, Guard};
use crate::release::render;
use crate::repo::Repo;
use crate::setup;
use crate::skips::Reports;
use crate::steps::{Steps, joined};
use anyhow::{Result, anyhow};
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

/// The variable that names a Python interpreter with botocore and moto for the tests.
const BOTOCORE: &str = "WASM_CPI_BOTOCORE";

/// The variable that sets how many tests run at the same time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Other programs that the tests run, each with its Debian package.
const TOOLS: [(&str, &str); 1] = [("valgrind", "valgrind")];

/// The programs and the cloud that are tested.
pub(super) struct Against<'a> {
    pub(super) dist: &'a Path,
    /// The `cloud.json` of the real services. Tests always run on the simulator as well.
    pub(super) openstack: Option<&'a Path>,
    /// A Python interpreter with botocore and moto.
    pub(super) botocore: Option<&'a Path>,
}

/// Builds and runs the integration tests, and the unit tests of the harness and of the programs beside it.
pub(super) fn run(repo: &Repo, against: &Against<'_>, reports: &Reports, rest: &[String]) -> Result<()> {
    let mut cargo = repo.cargo_static("test");
    cargo.args(["--release", "--package", "tests", "--all-targets", "--no-fail-fast"]);
    cargo.env(build::DIST, against.dist).env(build::MUTANTS, repo.mutants());
    match against.openstack {
        Some(cloud) => cargo.env(openstack::VARIABLE, cloud),
        None => cargo.env_remove(openstack::VARIABLE),
    };
    match against.botocore {
        Some(python) => cargo.env(BOTOCORE, python),
        None => cargo.env_remove(BOTOCORE),
    };
    if std::env::var_os(THREADS).is_none() {
        cargo.env(THREADS, threads().to_string());
    }
    reports.collect_from(&mut cargo);
    run_tests(&mut cargo, rest)
}

/// Two threads per core: these tests wait most of the time.
fn threads() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the steps of the full suite, once the tools are installed and the real cloud is up.
pub(super) fn steps(
    repo: &Repo,
    steps: &mut Steps,
    rest: &[String],
    reports: &Reports,
    services: ScopedJoinHandle<'_, Result<Services>>,
) {
    // If this fails, the other tests run; those that need these programs fail.
    steps.check("build the programs for mutation tests", || build::mutants(repo));
    let Services { tools, botocore, cloud } = joined(services).unwrap_or_else(|error| {
        let botocore = Err(anyhow!("its installation did not start"));
        Services { tools: Err(error), botocore, cloud: None }
    });
    steps.check("wait for the installation of tools", || tools);
    let botocore = steps.need("wait for the installation of botocore and moto", || botocore).ok();
    // If it cannot start, this step fails, and the tests run on the simulator only.
    let cloud = cloud.and_then(|cloud| steps.need("start the real OpenStack", || cloud).ok());
    steps.check("integration tests", || {
        let file = cloud.as_ref().map(|cloud| cloud.file.as_path());
        run(repo, &Against { dist: &repo.dist(), openstack: file, botocore: botocore.as_deref() }, reports, rest)
    });
    if let Some(guard) = cloud.and_then(|cloud| cloud.guard) {
        steps.check("stop the real OpenStack", || {
            openstack::down(repo)?;
            guard.dismiss()
        });
    }
}

/// Prepares what integration tests need besides our programs: installs tools, and starts the
/// real cloud if it is wanted.
pub(super) fn start_services(repo: &Repo, with_openstack: bool) -> Services {
    let tools = render::setup().and_then(|()| setup::install_missing_tools(&TOOLS));
    thread::scope(|threads| {
        let botocore = threads.spawn(|| moto::interpreter(repo));
        let cloud = with_openstack.then(|| real_openstack(repo));
        Services { tools, botocore: joined(botocore), cloud }
    })
}

/// What integration tests need besides our programs.
pub(super) struct Services {
    /// Whether the tools are installed.
    tools: Result<()>,
    /// The Python interpreter with botocore and moto.
    botocore: Result<PathBuf>,
    /// The real cloud; absent if it is not wanted.
    cloud: Option<Result<RealCloud>>,
}

pub(super) struct RealCloud {
    file: PathBuf,
    /// Stops the cloud when this process ends. `None` if the cloud was up before: then it stays up.
    guard: Option<Guard>,
}

fn real_openstack(repo: &Repo) -> Result<RealCloud> {
    let was_up = openstack::is_up(repo)?;
    let file = openstack::up(repo)?;
    let guard = if was_up { None } else { Some(openstack::guard(repo)?) };
    Ok(RealCloud { file, guard })
}
