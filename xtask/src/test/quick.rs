//! `cargo xtask test --quick`: the tests that an engineer runs between two edits. They take
//! less than five minutes once everything is built. The last lines list what is left out.

use super::integration::{self, Against};
use super::{finish, format_and_tidy, unit_tests, with_last_lines};
use crate::build;
use crate::release::render;
use crate::repo::Repo;
use crate::skips::Reports;
use crate::steps::Steps;
use anyhow::Result;

/// Integration tests that cannot use the programs of `--quick`, with the reason.
const LEFT_OUT: [(&str, &str); 5] = [
    ("author::", "it lays out a job with the shipped programs"),
    ("aws::second_opinion::", "it installs botocore and moto"),
    ("hardening::native_code::", "it runs the programs for mutation tests"),
    ("release::tarball::", "it packs the shipped programs"),
    ("startup::", "it counts the instructions of the optimised program"),
];

const NOT_RUN: &str =
    "NOT RUN: clippy, documentation, features, dependencies, advisories, real OpenStack, attacks, fuzz targets";

pub(super) fn run(repo: &Repo, rest: &[String]) -> Result<()> {
    with_last_lines(steps(repo, rest), &lines())
}

fn steps(repo: &Repo, rest: &[String]) -> Result<()> {
    let reports = Reports::new(repo)?;
    let mut steps = Steps::new();
    format_and_tidy(repo, &mut steps);
    let built = build::quick(repo, &mut steps);
    unit_tests(repo, &mut steps, rest);
    if built.is_ok() {
        steps.check("integration tests on the simulator", || {
            render::setup()?;
            let skipped = LEFT_OUT.iter().flat_map(|(test, _)| ["--skip", test]).map(str::to_owned);
            let rest: Vec<String> = rest.iter().cloned().chain(skipped).collect();
            integration::run(repo, &Against { dist: &repo.quick(), openstack: None, botocore: None }, &reports, &rest)
        });
    }
    built.and(finish(repo, steps, &reports, true))
}

/// Returns the last lines of the summary.
fn lines() -> String {
    let tests = LEFT_OUT.iter().map(|(test, why)| format!("NOT RUN: integration tests {test} ({why})\n"));
    tests.collect::<String>() + NOT_RUN
}
