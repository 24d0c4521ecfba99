//! `cargo xtask test`: runs everything that must pass, in both workspaces.
//!
//! Set-up and build come first, if a part needs them. After a failure the remaining steps
//! run, too, and the summary shows all of them, with the tests that were skipped. If an
//! option leaves out a part, the last lines say so.

mod integration;
mod quick;

use crate::arguments::{Part, Test};
use crate::attack;
use crate::build;
use crate::command;
use crate::deny;
use crate::features;
use crate::fuzz;
use crate::release::render;
use crate::repo::Repo;
use crate::skips::{self, Reports};
use crate::steps::{Steps, joined};
use crate::tidy;
use anyhow::{Result, anyhow};
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};

/// The last line of a run without the real OpenStack.
const WITHOUT_OPENSTACK: &str = "NOT RUN: openstack";

pub(crate) fn run(repo: &Repo, test: &Test) -> Result<()> {
    if test.quick {
        return quick::run(repo, &test.rest);
    }
    let result = parts(repo, test);
    if test.without_openstack { with_last_lines(result, WITHOUT_OPENSTACK) } else { result }
}

/// Prints the lines last, both after a success and after a failure.
fn with_last_lines(result: Result<()>, lines: &str) -> Result<()> {
    match result {
        Ok(()) => eprintln!("{lines}"),
        Err(error) => return Err(anyhow!("{error:#}\n{lines}")),
    }
    Ok(())
}

fn parts(repo: &Repo, test: &Test) -> Result<()> {
    let Test { only, rest, .. } = test;
    let wanted = |part: Part| only.is_none_or(|only| only == part);
    let reports = Reports::new(repo)?;
    let mut steps = Steps::new();
    let built = thread::scope(|threads| {
        // What later steps need is built and started in threads, beside the steps that do not need it.
        let deny = wanted(Part::Lint).then(|| threads.spawn(|| deny::install(repo)));
        let check_guests = |steps: &mut Steps| {
            if wanted(Part::Lint) {
                lint_guests(repo, steps);
            }
            if wanted(Part::Guests) {
                guests(repo, steps, rest);
            }
        };
        if wanted(Part::Integration) || wanted(Part::Attack) {
            build::build_all(repo, &mut steps, build::GUESTS, check_guests)?;
        } else {
            check_guests(&mut steps);
        }
        if let Some(deny) = deny {
            lint(repo, &mut steps, deny);
        }
        let services = wanted(Part::Integration)
            .then(|| threads.spawn(|| Ok(integration::start_services(repo, !test.without_openstack))));
        if wanted(Part::Unit) {
            unit(repo, &mut steps, rest);
        }
        if let Some(services) = services {
            integration::steps(repo, &mut steps, rest, &reports, services);
        }
        if wanted(Part::Attack) {
            attacks(repo, &mut steps, *only, rest, &reports);
        }
        Ok(())
    });
    built.and(finish(repo, steps, &reports, test.without_openstack))
}

/// Adds the tests that the test programs skipped, and prints the summary. Tests that an
/// option leaves out do not count as skipped.
fn finish(repo: &Repo, mut steps: Steps, reports: &Reports, without_openstack: bool) -> Result<()> {
    match reports.read() {
        Ok(mut skips) => {
            skips.retain(|skip| !(without_openstack && skip.name == "openstack"));
            steps.add_skips(skips);
        }
        Err(error) => steps.check("read the list of skipped tests", || Err(error)),
    }
    if skips::in_ci() {
        let checked = skips::check(&repo.root, steps.skips());
        steps.check("check that skipped tests are allowed", || checked);
    }
    steps.finish()
}

/// Runs the attacks and the fuzz targets. A filter for all parts need not match an attack, and
/// never selects a fuzz target.
fn attacks(repo: &Repo, steps: &mut Steps, only: Option<Part>, rest: &[String], reports: &Reports) {
    if rest.is_empty() || only == Some(Part::Attack) {
        steps.check("attacks", || attack::corpus(repo, &repo.dist(), rest, Some(reports)));
    }
    if rest.is_empty() {
        steps.check("fuzz targets", || fuzz::test(repo));
    }
}

fn format_and_tidy(repo: &Repo, steps: &mut Steps) {
    steps.check("tidy", || tidy::run(&repo.root));
    steps.check("format: runtime", || command::run(command::new("cargo").current_dir(&repo.root).args(FORMAT)));
    steps.check("format: guests", || command::run(command::new("cargo").current_dir(repo.guests()).args(FORMAT)));
}

fn lint(repo: &Repo, steps: &mut Steps, deny: ScopedJoinHandle<'_, Result<PathBuf>>) {
    format_and_tidy(repo, steps);
    steps.check("clippy: runtime", || {
        // With all features; the next step checks the code without them.
        let features = format!("{},fuzz/engine", build::MUTANTS_FEATURES);
        let mut clippy = cargo_with_shipped_profile(repo, "clippy");
        command::run(clippy.args(["--workspace", "--features", &features, "--all-targets"]).args(DENY_WARNINGS))
    });
    steps.check("clippy: what plain cargo builds", || {
        // The features of tests export items that would be dead code without them.
        command::run(cargo_with_shipped_profile(repo, "clippy").args(DENY_WARNINGS))
    });
    steps.check("documentation", || {
        let mut doc = cargo_with_shipped_profile(repo, "doc");
        command::run(doc.arg("--no-deps").env("RUSTDOCFLAGS", "--deny warnings"))
    });
    steps.check("features of the hot program", || features::check(repo));
    let Ok(deny) = steps.need("wait for the build of cargo-deny", || joined(deny)) else { return };
    for (name, manifest) in MANIFESTS {
        steps.check(&format!("dependencies: {name}"), || deny::dependencies(repo, &deny, manifest));
    }
    steps.check_if_possible("advisories", || deny::advisories(repo, &deny, &MANIFESTS.map(|(_, manifest)| manifest)));
}

fn lint_guests(repo: &Repo, steps: &mut Steps) {
    steps.check("clippy: guests", || {
        command::run(repo.cargo_guests("clippy").args(["--workspace", "--all-targets"]).args(DENY_WARNINGS))
    });
}

/// Returns cargo with the profile, target and flags of the shipped programs. Build scripts, procedural macros
/// and C libraries were compiled for those: in the dev profile they would be compiled a second time.
fn cargo_with_shipped_profile(repo: &Repo, subcommand: &str) -> Command {
    let mut cargo = repo.cargo_static(subcommand);
    cargo.arg("--release");
    cargo
}

fn unit_tests(repo: &Repo, steps: &mut Steps, rest: &[String]) {
    unit(repo, steps, rest);
    guests(repo, steps, rest);
}

fn unit(repo: &Repo, steps: &mut Steps, rest: &[String]) {
    steps.check("unit tests: runtime", || {
        // What plain `cargo test` runs and the tests of the hot program, over the dependencies that the programs
        // were built with: to compile them a second time takes minutes. No time is spent on optimising test code.
        let mut cargo = cargo_with_shipped_profile(repo, "test");
        for package in UNIT_TESTED {
            cargo.args(["--config", &format!("profile.release.package.{package}.opt-level=0"), "--package", package]);
        }
        run_tests(&mut cargo, rest)
    });
    steps.check("unit tests: xtask", || {
        render::setup()?;
        run_tests(repo.cargo("test").args(["--package", "xtask"]), rest)
    });
}

fn guests(repo: &Repo, steps: &mut Steps, rest: &[String]) {
    steps.check("unit tests: guests", || run_tests(repo.cargo_guests("test").arg("--workspace"), rest));
}

fn run_tests(cargo: &mut Command, rest: &[String]) -> Result<()> {
    command::run(cargo.arg("--").args(rest))
}

/// The packages whose unit tests need nothing that is built. The tests of `tests` and `xtask` have commands of their own.
const UNIT_TESTED: [&str; 6] =
    ["wasm-cpi", "wasm-cpi-checks", "wasm-cpi-policy", "wasm-cpi-run", "wasm-cpi-sigv4", "sigv4-tests"];
const FORMAT: [&str; 3] = ["fmt", "--all", "--check"];
const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];
const MANIFESTS: [(&str, &str); 3] =
    [("runtime", "Cargo.toml"), ("guests", "guests/Cargo.toml"), ("fuzzer", "tests/fuzz/engine/Cargo.toml")];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;
    use std::path::Path;

    #[test]
    fn no_package_has_tests_that_no_command_runs() {
        let files = tree::text_files(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap();
        let text = |path: &str| files.iter().find(|file| file.path == path).unwrap().text.as_str();
        let (_, members) = text("Cargo.toml").split_once("\nmembers = [").unwrap();
        let members = members.split(']').next().unwrap().split('"').skip(1).step_by(2);
        let tested = |member: &str| {
            let run = UNIT_TESTED.into_iter().chain(["tests", "xtask"]).map(|name| format!("\nname = \"{name}\"\n"));
            run.into_iter().any(|name| text(&format!("{member}/Cargo.toml")).contains(&name))
        };
        let untested: Vec<String> =
            members.filter(|member| !tested(member)).map(|member| format!("{member}/")).collect();
        assert!(!untested.is_empty(), "the list of members was not found");
        for file in files.iter().filter(|file| untested.iter().any(|member| file.path.starts_with(member))) {
            assert!(!file.text.contains("#[test]"), "no command runs the tests in {}", file.path);
        }
    }

    #[test]
    fn the_last_line_of_a_failure_also_names_what_was_left_out() {
        let error = with_last_lines(Err(anyhow!("1 of 2 steps failed")), WITHOUT_OPENSTACK).unwrap_err();
        assert_eq!(format!("{error:#}").lines().last(), Some("NOT RUN: openstack"));
        with_last_lines(Ok(()), WITHOUT_OPENSTACK).unwrap();
    }
}
