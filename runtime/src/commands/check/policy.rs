//! Checks the policy, alone and together with the config and the guest's needs.

use super::CheckReport;
use crate::config::{Config, Packages, operator_file};
use crate::effective_policy::{self, PolicyReader};
use crate::net::tls;
use serde_json::{Map, Value};
use std::path::Path;
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{Comparison, Needs, Pem, Policy, PolicyProblem, Properties};

impl CheckReport {
    pub(super) fn check_policy(&mut self, config: &Config, context: Map<String, Value>, needs: Option<&Needs>) {
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
                let count = policy.http.len();
                self.good.push(format!("{path}: {count} {}", if count == 1 { "grant" } else { "grants" }));
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
    pub(super) fn check_policy_alone(&mut self, path: &Path, packages: &Packages) {
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
}
