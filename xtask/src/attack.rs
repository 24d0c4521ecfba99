//! `cargo xtask attack`: the corpus of attacks against the built programs, then
//! a bounded run of the fuzz targets.
//!
//! With `--holes` the programs are built with every named check switchable
//! instead, and the corpus must notice each of them missing.

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

/// What makes namespaces and joins them, by the package that has it.
const TOOLS: [(&str, &str); 3] = [("ip", "iproute2"), ("unshare", "util-linux"), ("mount", "mount")];

pub(crate) fn run(repo: &Repo, attack: &Attack) -> Result<()> {
    let mut steps = Steps::new();
    build::everything(repo, &mut steps)?;
    if attack.holes {
        steps.need("build the programs with holes", || build::holes(repo))?;
        steps.check("holes", || {
            corpus(repo, &repo.holes(), &[&["--holes".to_owned()], &*attack.filters].concat(), None)
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

/// Builds the corpus and runs it against the programs in `dist`.
pub(crate) fn corpus(repo: &Repo, dist: &Path, words: &[String], reports: Option<&Reports>) -> Result<()> {
    setup::tools(&TOOLS)?;
    let mut cargo = repo.cargo_static("build");
    command::run(cargo.args(["--release", "--package", "tests", "--bin", "attack"]))?;
    let mut attack = command::new(repo.built("attack"));
    if let Some(reports) = reports {
        reports.collect_from(&mut attack);
    }
    command::run(attack.args(words).env(build::DIST, dist))
}
