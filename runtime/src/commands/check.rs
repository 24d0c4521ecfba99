//! `check`: lists all problems in a job's files, without running the guest.

mod cache;
mod guest;
mod policy;

use crate::audit::Audit;
use crate::commands::calling_user::become_caller;
use crate::commands::context_file;
use crate::commands::report::Report;
use crate::config::{Config, ConfigFile, ConfigSource, Packages};
use crate::failure::{Failure, Problem};
use crate::lock_down::{self, LockDownLevel};
use crate::net::tls;
use crate::startup;
use clap::Args;
use std::fmt::Write as _;
use std::path::PathBuf;
use wasm_cpi_checks::with_code;

/// The lines of the report, by kind.
#[derive(Default)]
struct CheckReport {
    good: Vec<String>,
    warnings: Vec<String>,
    problems: Vec<String>,
}

#[derive(Args)]
pub struct CheckOptions {
    #[command(flatten)]
    config: ConfigSource,
    /// File with the properties of a cpi-config, a JSON object; `-` is stdin
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// User who runs calls, by name or number (default if root runs this: the owner of the job's data)
    #[arg(long)]
    user: Option<String>,
}

pub fn check(options: &CheckOptions) -> Result<Report, Failure> {
    startup::secure_process();
    let source = &options.config;
    let path = source.path.as_path();
    // The user who runs calls need not be able to read this file.
    let context = context_file::read(options.context.as_deref())?;
    let checked_as = become_caller(path, options.user.as_deref())?;
    let mut report = CheckReport { good: checked_as.into_iter().collect(), ..CheckReport::default() };
    match load(source) {
        Err(problems) => {
            report.problems.extend(problems);
            // The policy can be checked on its own, if it is at its default path.
            report.check_policy_alone(&path.with_file_name("policy.json"), &Packages::of(source));
        }
        Ok(config) => {
            report.good.push(format!("{}: is valid", path.display()));
            report.warnings.extend(config.warnings());
            report.check_signature(&config);
            let needs = report.check_guest(&config);
            report.check_policy(&config, context, needs.as_ref());
            report.check_cache(&config.cache, &config.guest.sha256);
            report.report_leaks(&config);
            report.report_tokens(&config);
            report.report_hardening(config.hardening);
            let problem = config.audit.as_ref().and_then(Audit::find_problem);
            report.warnings.extend(problem.map(|problem| problem.text_with_code()));
            if let Some(ca) = config.registry.as_ref().and_then(|registry| registry.ca())
                && let Err(what) = tls::pem_or_file(ca)
            {
                report.problems.push(format!("`registry.ca`: {}", what.text_with_code()));
            }
        }
    }
    Ok(report.into_report())
}

/// Loads the config, or returns all of its problems.
fn load(source: &ConfigSource) -> Result<Config, Vec<String>> {
    let one = |failure: Failure| vec![with_code(&failure.message, failure.check)];
    let file = ConfigFile::read(source).map_err(one)?;
    Config::parse(file).map_err(|problems| match problems.len() {
        1 => one(Failure::of_problems(&source.path.display(), &problems)),
        _ => problems.iter().map(Problem::text_with_code).collect(),
    })
}

impl CheckReport {
    fn add_failure(&mut self, failure: &Failure) {
        self.problems.push(with_code(&failure.message, failure.check));
    }

    /// Reports which parts of the lock-down this machine supports.
    fn report_hardening(&mut self, level: LockDownLevel) {
        let report = lock_down::probe();
        let missing = report.missing();
        let verdict = if missing.is_empty() { "would succeed" } else { "would fail" };
        self.good.push(format!(
            "hardening is `{level}`; this machine supports {}; UDP is never restricted; `required` {verdict}",
            report.mechanisms()
        ));
        let missing = missing.into_iter().map(|what| format!("hardening: this machine lacks {what}"));
        match level {
            LockDownLevel::Required => self.problems.extend(missing),
            LockDownLevel::BestEffort => self.warnings.extend(missing),
            LockDownLevel::Off => {}
        }
    }

    fn into_report(self) -> Report {
        let mut text = String::new();
        for (word, lines) in [("ok", &self.good), ("warning", &self.warnings), ("problem", &self.problems)] {
            for line in lines {
                let _ = writeln!(text, "{word}: {line}");
            }
        }
        let plural = |lines: &[String]| if lines.len() == 1 { "" } else { "s" };
        let (problems, warnings) = (&self.problems, &self.warnings);
        let _ = writeln!(
            text,
            "{} problem{}, {} warning{}",
            problems.len(),
            plural(problems),
            warnings.len(),
            plural(warnings)
        );
        Report { text, good: self.problems.is_empty() }
    }
}
