//! `check`: lists all problems in a job's files, without running the guest.

use crate::audit::Audit;
use crate::call;
use crate::commands::calling_user::become_caller;
use crate::commands::cli::Report;
use crate::commands::context_file;
use crate::component::cache::Cache;
use crate::component::source::PinnedGuest;
use crate::component::{declarations, source};
use crate::config::{Config, ConfigFile, ConfigSource, Packages, operator_file};
use crate::effective_policy::{self, PolicyReader};
use crate::failure::{Failure, Problem};
use crate::leak_latch::{LeakLatch, OnLeak};
use crate::lock_down::{self, LockDownLevel};
use crate::net::tls;
use crate::startup;
use crate::token_store::{self, TokenStoreError};
use clap::Args;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::{Check, with_code};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{Comparison, Needs, Pem, Policy, PolicyProblem, Properties};

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

    /// Reports a leak because of which calls are refused.
    fn report_leaks(&mut self, config: &Config) {
        if config.on_leak == OnLeak::End || !LeakLatch::exists(&config.cache, &config.guest_of_job()) {
            return;
        }
        match LeakLatch::open(&config.cache, &config.guest_of_job()) {
            Ok(latch) => {
                let refusal = latch.recorded().map(|leak| call::leak_refusal(leak, config));
                self.problems.extend(refusal.map(|text| with_code(&text, Some(Check::LeakLatched))));
            }
            Err(error) => self.problems.push(error.to_string()),
        }
    }

    /// Reports how many tokens are kept in the cache directory.
    fn report_tokens(&mut self, config: &Config) {
        let cache = config.cache.display();
        match token_store::count_tokens(&config.cache) {
            // The cache directory has warnings of its own, and calls create it.
            Err(TokenStoreError::Io(_) | TokenStoreError::Directory(_)) | Ok(0) => {}
            Err(error) if config.keep_tokens => self.warnings.push(error.to_string()),
            Err(_) => {}
            Ok(count) if config.keep_tokens => {
                self.good.push(format!("{cache}: tokens kept for later calls: {count}; `wasm-cpi forget-tokens` deletes them"));
            }
            Ok(count) => self.warnings.push(format!(
                "`keep_tokens` is false, but tokens are still in {cache}: {count}; `wasm-cpi forget-tokens` deletes them"
            )),
        }
    }

    /// Verifies the signatures of the pinned digest, if the config demands signatures.
    fn check_signature(&mut self, config: &Config) {
        let PinnedGuest { path, sha256, signature } = &config.guest;
        if let Some(signature) = signature {
            match signature.verify(path, sha256) {
                Ok(signed) => self.good.push(format!("guest {}: {}", path.display(), signature.describe(&signed))),
                Err(failure) => self.add_failure(&failure),
            }
        }
    }

    /// Checks the guest's file, its pin and its imports. Returns its needs.
    fn check_guest(&mut self, config: &Config) -> Option<Needs> {
        let source = match source::read_pinned(&config.guest, &config.limits) {
            Ok(source) => source,
            Err(failure) => {
                self.add_failure(&failure);
                return None;
            }
        };
        let file = config.guest.path.display();
        let declarations = match declarations::inspect(&source.bytes) {
            Ok(declarations) => declarations,
            Err(problems) => {
                self.problems
                    .extend(problems.iter().map(|problem| format!("guest {file}: {}", problem.text_with_code())));
                return None;
            }
        };
        self.good.push(format!("guest {file}: matches its pin, and imports only what the runtime offers"));
        if !declarations.has_names {
            self.warnings.push(format!("guest {file} has no name section, so its backtraces do not name functions; build it without stripping names"));
        }
        let Some(text) = declarations.needs else {
            self.warnings.push(format!(
                "guest {file} declares no needs, so it gets nothing unless the policy sets `trust_undeclared`"
            ));
            return None;
        };
        match Needs::parse(text.as_bytes()) {
            Ok(needs) => Some(needs),
            Err(problems) => {
                let needs = problems.iter().map(|problem| format!("guest {file}: needs: {}", problem.text_with_code()));
                self.problems.extend(needs);
                None
            }
        }
    }

    fn check_policy(&mut self, config: &Config, context: Map<String, Value>, needs: Option<&Needs>) {
        let path = config.policy_path.display();
        let text = match effective_policy::read_policy(config) {
            Ok((text, warnings)) => {
                self.warnings.extend(warnings);
                text
            }
            Err(failure) => return self.add_failure(&failure),
        };
        let properties = Properties::merge(config.properties.clone(), context);
        match effective_policy::resolve(config, &text, &properties, needs) {
            Ok(policy) => {
                self.check_certificates(&config.policy_path, &policy);
                self.check_sendable(&policy, &properties, needs);
                self.good.push(format!("{path}: {} grants", policy.http.len()));
                self.report_credentials(config, &policy);
                if let Some(needs) = needs {
                    let comparison = policy.compare_needs(needs);
                    if comparison.ungranted().next().is_some() {
                        self.warnings.extend(effective_policy::presets_of_guest(&config.guest.path));
                    }
                    self.compare_needs(&config.policy_path, &comparison);
                }
                let unused = policy.unused_certificates(&properties);
                let line = |found: &PolicyProblem| format!("{path}: {}", found.text_with_code());
                self.warnings.extend(policy.warnings().iter().chain(&unused).map(line));
                self.problems.extend(policy.unreachable().iter().map(line));
            }
            Err(problems) => {
                self.problems.extend(problems.iter().map(|problem| format!("{path}: {}", problem.text_with_code())));
            }
        }
    }

    /// Reports where the keys come from that sign requests, and which of them are kept.
    fn report_credentials(&mut self, config: &Config, policy: &Policy) {
        let path = config.policy_path.display();
        for (name, credentials) in &policy.credentials {
            let what = effective_policy::describe_credentials(credentials, config.keep_tokens);
            self.good.push(format!("{path}: credentials `{name}`: {what}"));
        }
    }

    /// Checks that the job's secrets can be written where the policy sends them.
    fn check_sendable(&mut self, policy: &Policy, properties: &Properties, needs: Option<&Needs>) {
        let mut sealed = Vec::new();
        properties.visible(&policy.expose, needs, |name, value, _| {
            sealed.push((name.to_owned(), Secret::new(value)));
            String::new()
        });
        if let Err(failure) = effective_policy::check_sendable(policy, &sealed) {
            self.add_failure(&failure);
        }
    }

    /// Compares the guest's needs with the policy. A need that nothing grants is a problem; one that is
    /// granted in part is a warning, because the operator may have decided so.
    fn compare_needs(&mut self, path: &Path, comparison: &Comparison) {
        let path = path.display();
        let ungranted: Vec<&str> = comparison.ungranted().map(|need| need.id.as_str()).collect();
        for need in comparison.http.iter().filter(|need| !need.is_complete() && !need.optional) {
            let lines = need.grant_line.iter().map(|line| format!("add to `http`: {line}"));
            let slots = need.slot_lines.iter().map(|line| format!("add to the `slots` of a grant: {line}"));
            let show = need.show_lines.iter().map(|line| format!("write in {line}"));
            let remedy: Vec<String> = lines.chain(slots).chain(show).collect();
            let (missing, remedy) = (need.missing.join(", "), remedy.join("; "));
            let (unset, set) = match &need.unset_property {
                Some(name) => (
                    format!(", and the property `{name}`, which holds its URL, is not set or not valid"),
                    format!("set the property `{name}`, and "),
                ),
                None => (String::new(), String::new()),
            };
            if ungranted.contains(&need.id.as_str()) {
                let what = format!("no grant covers the guest's need `{}` ({missing}){unset}", need.id);
                self.problems.push(format!("{path}: {what}; {set}{remedy}"));
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
    fn check_policy_alone(&mut self, path: &Path, packages: &Packages) {
        let Ok((text, _)) = operator_file::read(path) else { return };
        if let Err(problems) = PolicyReader::new(path, packages).parse_policy(&text) {
            self.problems
                .extend(problems.iter().map(|problem| format!("{}: {}", path.display(), problem.text_with_code())));
        }
    }

    /// Checks the certificates and keys that the policy names, which a call reads only when it needs them.
    fn check_certificates(&mut self, path: &Path, policy: &Policy) {
        let grants = policy.http.iter().map(|grant| (format!("grant `{}`", grant.id), &grant.tls));
        let logins = policy.logins.iter().map(|(name, login)| (format!("login `{name}`"), &login.tls));
        let roles = policy
            .credentials
            .iter()
            .filter_map(|(name, one)| Some((format!("credentials `{name}`"), &one.assumed_role()?.tls)));
        for (whose, tls) in grants.chain(logins).chain(roles) {
            type Read = fn(&Path) -> Result<String, tls::TlsError>;
            let (pem, key): (Read, Read) = (tls::read_pem, tls::read_key);
            let client = tls.client.iter().flat_map(|client| [(&client.cert, pem), (&client.key, key)]);
            for (file, read) in tls.ca.iter().map(|ca| (ca, pem)).chain(client) {
                if let Pem::File(name) = file
                    && let Err(what) = read(&path.with_file_name(name))
                {
                    self.problems.push(format!("{}: {whose}: {}", path.display(), what.text_with_code()));
                }
            }
        }
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

    fn check_cache(&mut self, path: &Path, guest_sha256: &str) {
        match Cache::open(path) {
            Ok(cache) => match cache.lookup(guest_sha256) {
                Ok(_) => self.good.push(format!("{}: the guest is prepared", path.display())),
                Err(_) => self.warnings.push(
                    "the guest is not prepared, so the first call compiles it; run `wasm-cpi prepare` to avoid that"
                        .into(),
                ),
            },
            Err(error) if error.is_absent() => self.warnings.push(format!(
                "the cache {} does not exist yet: the first call creates it, if its user may, and compiles the guest; run \
                 `wasm-cpi prepare` to avoid that",
                path.display()
            )),
            Err(error) => {
                let what = format!("{error}; every call compiles the guest");
                self.warnings.push(with_code(&what, error.check()));
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_cpi_policy::ComparedNeed;

    #[test]
    fn a_need_whose_url_is_not_set_is_reported_with_the_property_to_set() {
        let need = ComparedNeed {
            id: "compute".into(),
            to: "${endpoints.compute}".into(),
            why: String::new(),
            granted_by: vec![],
            missing: vec!["GET /servers".into()],
            unset_property: Some("endpoints.compute".into()),
            optional: false,
            grant_line: Some("{}".into()),
            slot_lines: vec![],
            show_lines: vec![],
        };
        let comparison = Comparison {
            http: vec![need],
            hidden: vec![],
            hidden_origins: vec![],
            expose_line: None,
            missing_logins: vec![],
            undeclared_logins: vec![],
        };
        let mut report = CheckReport::default();
        report.compare_needs(Path::new("policy.json"), &comparison);
        let expected = "policy.json: no grant covers the guest's need `compute` (GET /servers), and the property \
                        `endpoints.compute`, which holds its URL, is not set or not valid; set the property \
                        `endpoints.compute`, and add to `http`: {}";
        assert_eq!(report.problems, [expected]);
    }

    #[test]
    fn a_cache_that_does_not_exist_yet_is_a_warning_with_the_command_that_creates_it() {
        let mut report = CheckReport::default();
        report.check_cache(Path::new("/nonexistent/cache"), "00");
        let [warning] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
        assert!(warning.starts_with("the cache /nonexistent/cache does not exist yet: "), "{warning}");
        assert!(warning.ends_with("run `wasm-cpi prepare` to avoid that"), "{warning}");
    }
}
