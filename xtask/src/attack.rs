//! `cargo xtask attack`: runs the attack corpus against the built programs, then
//! the fuzz targets for a limited time.
//!
//! With `--mutants` it runs mutation tests instead: the programs are built so that
//! every named check can be turned off, and the corpus must detect each missing check.

use crate::arguments::Attack;
use crate::build;
use crate::command;
use crate::fuzz;
use crate::repo::Repo;
use crate::setup;
use crate::skips::Reports;
use crate::steps::Steps;
use anyhow::Result;
use std::path::Path;

/// The programs that create and enter namespaces, each with its Debian package.
const TOOLS: [(&str, &str); 3] = [("ip", "iproute2"), ("unshare", "util-linux"), ("mount", "mount")];

pub(crate) fn run(repo: &Repo, attack: &Attack) -> Result<()> {
    let mut steps = Steps::new();
    build::build_everything(repo, &mut steps)?;
    if attack.mutants {
        steps.need("build the programs for mutation tests", || build::mutants(repo))?;
        steps.check("mutation tests", || {
            corpus(repo, &repo.mutants(), &[&["--mutants".to_owned()], &*attack.filters].concat(), None)
        });
        return steps.finish();
    }
    steps.check("attacks", || corpus(repo, &repo.dist(), &attack.filters, None));
    if attack.filters.is_empty() {
        let seconds = attack.minutes.map_or(fuzz::DEFAULT_SECONDS, |minutes| minutes * 60);
        steps.check("fuzz targets", || fuzz::run(repo, seconds));
    }
    steps.finish()
}

/// Builds the attack corpus and runs it against the programs in `dist`.
pub(crate) fn corpus(repo: &Repo, dist: &Path, arguments: &[String], reports: Option<&Reports>) -> Result<()> {
    setup::install_missing_tools(&TOOLS)?;
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--package", "tests", "--bin", "attack"]))?;
    let mut attack = command::new(repo.built("attack"));
    if let Some(reports) = reports {
        reports.collect_from(&mut attack);
    }
    command::run(attack.args(arguments).env(build::DIST, dist))
}
