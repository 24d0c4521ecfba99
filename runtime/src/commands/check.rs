//! `check`: lists all problems in a job's files, without running the guest.

use crate::audit::Audit;
use crate::call;
use crate::commands::calling_user::become_caller;
use crate::commands::cli::Report;
use crate::component::cache::Cache;
use crate::component::source::PinnedGuest;
use crate::component::{source, surface};
use crate::config::{self, Config, ConfigArg, Packages};
use crate::effective_policy::{self, Presets};
use crate::failure::Failure;
use crate::hardening::{self, Hardening};
use crate::leak_latch::{LeakLatch, Leaks};
use crate::net::tls;
use crate::startup;
use clap::Args;
use std::fmt::Write as _;
use std::path::Path;
use wasm_cpi_checks::{Check, with_code};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{Comparison, Needs, Pem, Policy, Properties};

/// The lines of the report, by kind.
#[derive(Default)]
struct Findings {
    good: Vec<String>,
    warnings: Vec<String>,
    problems: Vec<String>,
}

#[derive(Args)]
pub struct CheckOptions {
    #[command(flatten)]
    config: ConfigArg,
    /// User who runs calls, by name or number (default if root runs this: the owner of the job's data)
    #[arg(long)]
    user: Option<String>,
}

pub fn check(options: &CheckOptions) -> Result<Report, Failure> {
    startup::secure_process();
    let source = &options.config;
    let path = source.path.as_path();
    let judged = become_caller(path, options.user.as_deref())?;
    let mut findings = Findings { good: judged.into_iter().collect(), ..Findings::default() };
    match Config::load(source) {
        Err(failure) => {
            findings.failed(&failure);
            // The policy can be checked on its own, if it is at its default path.
            findings.policy_text(&path.with_file_name("policy.json"), &Packages::of(source));
        }
        Ok(config) => {
            findings.good.push(format!("{}: is valid", path.display()));
            findings.warnings.extend(config.warnings.iter().cloned());
            findings.signature(&config);
            let needs = findings.guest(&config);
            findings.policy(&config, needs.as_ref());
            findings.cache(&config);
            findings.leaks(&config);
            findings.hardening(config.hardening);
            let problem = config.audit.as_ref().and_then(Audit::find_problem);
            findings.warnings.extend(problem.map(|problem| problem.report()));
            if let Some(ca) = config.registry.as_ref().and_then(|registry| registry.ca())
                && let Err(what) = tls::pem_or_file(ca)
            {
                findings.problems.push(format!("`registry.ca`: {}", what.report()));
            }
        }
    }
    Ok(findings.report())
}

impl Findings {
    /// Adds the problems of a failure, which are its details if it has several.
    fn failed(&mut self, failure: &Failure) {
        if failure.detail.lines().count() > 1 {
            self.problems.extend(failure.detail.lines().map(str::to_owned));
        } else {
            self.problems.push(with_code(&failure.message, failure.check));
        }
    }

    /// Reports a leak because of which calls are refused.
    fn leaks(&mut self, config: &Config) {
        if config.leaks == Leaks::End || !LeakLatch::exists(&config.cache, config.latch_key()) {
            return;
        }
        match LeakLatch::open(&config.cache, config.latch_key()) {
            Ok(latch) => {
                let refusal = latch.recorded().map(|leak| call::leak_refusal(leak, &config.source));
                self.problems.extend(refusal.map(|text| with_code(&text, Some(Check::LeakLatched))));
            }
            Err(error) => self.problems.push(error.to_string()),
        }
    }

    /// Verifies the signatures of the pinned digest, if the config demands signatures.
    fn signature(&mut self, config: &Config) {
        let PinnedGuest { path, sha256, signature } = &config.guest;
        if let Some(signature) = signature {
            match signature.verify(path, sha256) {
                Ok(signed) => self.good.push(format!("guest {}: {}", path.display(), signature.describe(&signed))),
                Err(failure) => self.failed(&failure),
            }
        }
    }

    /// Checks the guest's file, its pin and its imports. Returns its needs.
    fn guest(&mut self, config: &Config) -> Option<Needs> {
        let source = match source::read_pinned(&config.guest, &config.limits) {
            Ok(source) => source,
            Err(failure) => {
                self.failed(&failure);
                return None;
            }
        };
        let file = config.guest.path.display();
        let surface = match surface::inspect(&source.bytes) {
            Ok(surface) => surface,
            Err(problems) => {
                self.problems.extend(problems.iter().map(|problem| format!("guest {file}: {}", problem.report())));
                return None;
            }
        };
        self.good.push(format!("guest {file}: matches its pin, and imports only what the runtime offers"));
        if !surface.has_names {
            self.warnings.push(format!("guest {file} has no name section, so its backtraces do not name functions; build it without stripping names"));
        }
        let Some(text) = surface.needs else {
            self.warnings.push(format!(
                "guest {file} declares no needs, so it gets nothing unless the policy sets `trust_undeclared`"
            ));
            return None;
        };
        match Needs::parse(text.as_bytes()) {
            Ok(needs) => Some(needs),
            Err(problems) => {
                let needs = problems.iter().map(|problem| format!("guest {file}: needs: {}", problem.report()));
                self.problems.extend(needs);
                None
            }
        }
    }

    fn policy(&mut self, config: &Config, needs: Option<&Needs>) {
        let path = config.policy.display();
        let text = match config
            .inline_policy
            .clone()
            .map_or_else(|| config::read(&config.policy), |text| Ok((text, vec![])))
        {
            Ok((text, warnings)) => {
                self.warnings.extend(warnings);
                text
            }
            Err(failure) => return self.failed(&failure),
        };
        let properties = Properties::merge(config.properties.clone(), serde_json::Map::new());
        let presets = Presets::beside(&config.policy, &config.packages);
        let resolved = presets.parse(&text).and_then(|file| {
            Policy::resolve(&file, &properties, needs, &effective_policy::forbidden(config), config.allow_local)
        });
        match resolved {
            Ok(policy) => {
                self.certificates(&config.policy, &policy);
                self.sendable(&policy, &properties, needs);
                self.good.push(format!("{path}: {} grants", policy.http.len()));
                if let Some(needs) = needs {
                    self.needs(&config.policy, &policy.compare_needs(needs));
                }
                let unused = policy.unused_certificates(&properties);
                self.warnings.extend(policy.warnings().iter().chain(&unused).map(|found| format!("{path}: {found}")));
            }
            Err(problems) => {
                self.problems.extend(problems.iter().map(|problem| format!("{path}: {}", problem.report())));
            }
        }
    }

    /// Checks that the job's secrets can be written where the policy sends them.
    fn sendable(&mut self, policy: &Policy, properties: &Properties, needs: Option<&Needs>) {
        let mut sealed = Vec::new();
        properties.visible(&policy.expose, needs, |name, value, _| {
            sealed.push((name.to_owned(), Secret::new(value)));
            String::new()
        });
        if let Err(failure) = effective_policy::check_sendable(policy, &sealed) {
            self.failed(&failure);
        }
    }

    /// Compares the guest's needs with the policy. A need that nothing grants is a problem; one that is
    /// granted in part is a warning, because the operator may have decided so.
    fn needs(&mut self, path: &Path, comparison: &Comparison) {
        let path = path.display();
        let ungranted: Vec<&str> = comparison.ungranted().map(|need| need.id.as_str()).collect();
        for need in comparison.http.iter().filter(|need| !need.missing.is_empty() && !need.optional) {
            let lines = need.grant_line.iter().map(|line| format!("add to `http`: {line}"));
            let slots = need.slot_lines.iter().map(|line| format!("add to the `slots` of a grant: {line}"));
            let remedy: Vec<String> = lines.chain(slots).collect();
            let (missing, remedy) = (need.missing.join(", "), remedy.join("; "));
            if ungranted.contains(&need.id.as_str()) {
                let what = format!("nothing grants the guest's need `{}`, which is {missing}", need.id);
                self.problems.push(format!("{path}: {what}; {remedy}"));
            } else {
                let what = format!("the guest's need `{}` lacks {missing}", need.id);
                self.warnings.push(format!("{path}: {what}; if the guest should have it, {remedy}"));
            }
        }
        for name in &comparison.hidden_origins {
            let what = format!("`expose` does not list `{name}`, so the guest cannot write the URLs of its requests");
            let line = comparison.expose_line.as_deref().unwrap_or_default();
            self.problems.push(format!("{path}: {what}; set {line}"));
        }
        for name in &comparison.undeclared_logins {
            let what = format!("grants use the login `{name}`, which the guest's needs do not declare");
            let remedy = format!("the guest's author adds `{name}` to `logins` in needs.json");
            self.problems.push(format!("{path}: {what}, so their requests are denied; {remedy}"));
        }
        for name in &comparison.missing_logins {
            let what = format!("the guest's needs declare the login `{name}`, which the policy does not describe");
            self.warnings.push(format!("{path}: {what}; describe it under `logins`, if the guest should have it"));
        }
    }

    /// Checks the policy on its own, if the config cannot be read.
    fn policy_text(&mut self, path: &Path, packages: &Packages) {
        let Ok((text, _)) = config::read(path) else { return };
        let presets = Presets::beside(path, packages);
        if let Err(problems) = presets.parse(&text) {
            self.problems.extend(problems.iter().map(|problem| format!("{}: {}", path.display(), problem.report())));
        }
    }

    /// Checks the certificates and keys that the policy names, which a call reads only when it needs them.
    fn certificates(&mut self, path: &Path, policy: &Policy) {
        let grants = policy.http.iter().map(|grant| (format!("grant `{}`", grant.id), &grant.tls));
        let logins = policy.logins.iter().map(|(name, login)| (format!("login `{name}`"), &login.tls));
        for (whose, tls) in grants.chain(logins) {
            type Read = fn(&Path) -> Result<String, tls::TlsError>;
            let (pem, key): (Read, Read) = (tls::read_pem, tls::read_key);
            let client = tls.client.iter().flat_map(|client| [(&client.cert, pem), (&client.key, key)]);
            for (file, read) in tls.ca.iter().map(|ca| (ca, pem)).chain(client) {
                if let Pem::File(name) = file
                    && let Err(what) = read(&path.with_file_name(name))
                {
                    self.problems.push(format!("{}: {whose}: {}", path.display(), what.report()));
                }
            }
        }
    }

    /// Reports which parts of the lock-down this machine supports.
    fn hardening(&mut self, level: Hardening) {
        let report = hardening::probe();
        let missing = report.missing();
        let verdict = if missing.is_empty() { "would be met" } else { "would not be met" };
        self.good.push(format!(
            "hardening is `{level}`; this machine supports {}; UDP is never restricted; `required` {verdict}",
            report.mechanisms()
        ));
        let missing = missing.into_iter().map(|what| format!("hardening: {what}"));
        match level {
            Hardening::Required => self.problems.extend(missing),
            Hardening::BestEffort => self.warnings.extend(missing),
            Hardening::Off => {}
        }
    }

    fn cache(&mut self, config: &Config) {
        match Cache::open(&config.cache) {
            Ok(cache) => match cache.lookup(&config.guest.sha256) {
                Ok(_) => self.good.push(format!("{}: the guest is prepared", config.cache.display())),
                Err(_) => self.warnings.push(
                    "the guest is not prepared, so the first call compiles it; run `wasm-cpi prepare` to avoid that"
                        .into(),
                ),
            },
            Err(error) => {
                let what = format!("{error}; every call compiles the guest, unless it can create the directory");
                self.warnings.push(with_code(&what, error.check()));
            }
        }
    }

    fn report(self) -> Report {
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
