//! Writes the lines that a denial suggests: a grant for the policy, or a need for the guest. `suggested_grant` completes
//! a grant.
//!
//! A suggested grant allows one method at one origin, for the pattern of paths that the guest
//! declares, or for the one path of the request if the guest declares everything. Settings that
//! the operator chose for the same origin are copied from another grant: addresses, TLS,
//! `plain_http`, auth, and slots for the same requests. Nothing else in it comes from anywhere but
//! the guest's needs and the request.

use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::blocks::Blocks;
use super::grant::{Grant, GrantSpec};
use super::judge::Request;
use super::needs::{ResolvedNeed, Restriction};
use super::operations::{OperationMismatch, Operations, is_plain};
use super::path::PathPattern;
use super::problem::Problems;
use super::stages::{Mismatch, StageMismatch};
use super::suggested_grant::{complete, free_id};
use super::verdict::DenialReason;
use wasm_cpi_checks::Check;

/// What would allow a denied request, for operators.
pub(super) enum Hint {
    /// A grant for the policy.
    Grant(String),
    /// The id of a grant, and a place that its `fields` do not list.
    Fields(String, String),
    /// Lines for the guest's needs, with where they belong.
    Needs(String),
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Grant(grant) => {
                write!(
                    f,
                    "the guest asks for this request; if it should have it, add to \"http\" of the policy: {grant}"
                )
            }
            Hint::Fields(grant, place) => {
                let line = format!("\"{place}\": \"any\"");
                write!(
                    f,
                    "the guest asks for this field; if it should have it, add to `places` in the `fields` of grant `{grant}`: {line}"
                )
            }
            Hint::Needs(line) => write!(f, "the guest's author declares it in needs.json, {line}"),
        }
    }
}

/// A need that declares a request, and the declared path that matches it.
pub(super) type Declaring<'a> = (&'a ResolvedNeed, &'a PathPattern);

impl Request<'_> {
    /// Returns the needs that declare the request, whatever its operation is.
    pub(super) fn declaring<'n>(&self, needs: &'n [ResolvedNeed]) -> Vec<Declaring<'n>> {
        let each = needs.iter().map(|one| (one, one.declares(self.destination, self.method)));
        each.flat_map(|(one, paths)| paths.map(move |path| (one, path))).collect()
    }

    /// Returns what would allow the request. `needs` is `None` for a guest without needs.
    pub(super) fn hint(
        &self,
        reason: DenialReason,
        nearest: &[(&Grant, &StageMismatch)],
        needs: Option<&[Declaring<'_>]>,
        grants: &[Arc<Grant>],
    ) -> Option<Hint> {
        // A parameter of a query is not in the needs; the operator decides about it.
        let needs = needs.filter(|_| reason != DenialReason::Query)?;
        if needs.is_empty() {
            // An origin that neither side names is most often a mistake in a property that holds a URL.
            let elsewhere = [DenialReason::Scheme, DenialReason::Host, DenialReason::Port].contains(&reason);
            return self.need_line(None).filter(|_| !elsewhere).map(Hint::Needs);
        }
        if reason != DenialReason::Operation {
            let pasted = |(need, path): &Declaring<'_>| {
                let operations = match &need.need.operations {
                    Restriction::Only(Some(declared)) if declared.allows(self.destination, self.message).is_err() => {
                        return None;
                    }
                    Restriction::Only(Some(declared)) => Some(declared.clone()),
                    Restriction::Only(None) | Restriction::Any => None,
                };
                self.grant(need, path, operations.as_ref(), grants)
            };
            return needs.iter().find_map(pasted).map(Hint::Grant);
        }
        let (grant, failed) = nearest.first()?;
        let mismatch = match failed.mismatch.as_ref()? {
            Mismatch::Field(owner, mismatch) => {
                return Some(Hint::Fields(owner.clone(), mismatch.unlisted()?.to_owned()));
            }
            Mismatch::Operation(mismatch) => mismatch,
            Mismatch::Query(_) | Mismatch::Uncertain(..) => return None,
        };
        let OperationMismatch::NotListed(operation) = mismatch else { return None };
        let listed = grant.operations.as_ref().filter(|_| is_plain(operation))?;
        let one = listed.only(operation);
        // What else is wrong with the request, a grant for its operation would not change.
        one.allows(self.destination, self.message).ok()?;
        let pasted = |(need, path): &Declaring<'_>| {
            let declared = need.declares_operation(self.destination, self.message, true);
            declared.then(|| self.grant(need, path, Some(&one), grants)).flatten()
        };
        let undeclared = || Hint::Needs(format!("beside the `paths` of the need: \"operations\": {}", one.to_json()));
        Some(needs.iter().find_map(pasted).map_or_else(undeclared, Hint::Grant))
    }

    /// Returns one line of JSON, or `None` if no valid grant can be written for this request.
    fn grant(
        &self,
        by: &ResolvedNeed,
        declared: &PathPattern,
        operations: Option<&Operations>,
        grants: &[Arc<Grant>],
    ) -> Option<String> {
        let (need, destination) = (&by.need, self.destination);
        let everything =
            need.to == Restriction::Any || need.methods == Restriction::Any || *declared == PathPattern::any();
        let vague = Check::HintNarrow.choose(everything, false);
        let below = by.base.strip(destination.path());
        let path = match below {
            _ if !vague => declared.to_string(),
            Some(below) => below.to_owned(),
            None => destination.path().to_owned(),
        };
        if vague && path.contains('*') {
            return None;
        }
        // A property by its name: its value may be one that no message shows.
        let to = match &need.to {
            Restriction::Only(spec) if spec.property().is_some() && (!vague || below.is_some()) => spec.to_string(),
            _ => destination.origin(),
        };
        let id = free_id(&need.id, &|id| grants.iter().any(|grant| grant.id == id));
        let mut grant = json!({"id": id, "to": to, "methods": [self.method], "paths": [path]});
        if let Some(operations) = operations {
            grant["operations"] = operations.to_json();
        }
        let mut line = complete(grant, by, grants, &|grant| grant.origin.matches(destination), &|grant| {
            grant.origin.host.matches(destination.host())
        });
        let of_origin = grants.iter().filter(|grant| grant.origin.matches(destination));
        let hides_values = line.get("slots").is_some() || of_origin.into_iter().any(|grant| grant.hides_values);
        if let Some(query) = destination.query().filter(|_| hides_values) {
            // Where grants hide values of responses, a grant allows only the parameters that it lists.
            let mut names: Vec<String> = Vec::new();
            for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
                if !names.iter().any(|known| *known == name) {
                    names.push(name.into_owned());
                }
            }
            if query.contains(';') {
                return None;
            }
            line["query"] = json!(names);
        }
        if let Some(headers) = self.block_headers {
            Blocks::allow_in(&mut line, headers);
        }
        let problems = Problems::default();
        GrantSpec::read(&line, String::new(), &problems)?;
        problems.is_empty().then(|| line.to_string())
    }

    /// Returns the need for a guest that does not declare the request. `grant` allows it already.
    pub(super) fn need_line(&self, grant: Option<&Grant>) -> Option<String> {
        let path = self.destination.path();
        let (id, to, path) = match grant {
            Some(grant) => {
                let pattern = grant.shared.paths.iter().zip(&grant.paths).find(|(_, whole)| whole.matches(path));
                (grant.id.as_str(), grant.shared.to.clone(), pattern?.0.to_string())
            }
            None => ("need", self.destination.origin(), path.to_owned()),
        };
        let mut need = json!({"id": id, "to": to, "methods": [self.method], "paths": [path]});
        if let Some(operations) = grant.and_then(|grant| self.operation_of(grant)) {
            need["operations"] = operations.to_json();
        }
        let section = json!({"version": 1, "http": [need]}).to_string();
        super::Needs::parse(section.as_bytes()).is_ok().then(|| format!("under \"http\": {need}"))
    }

    /// Returns the operations for a need that does not declare the operation of the request.
    pub(super) fn operation_line(&self, grant: &Grant) -> Option<String> {
        let operations = self.operation_of(grant)?;
        Some(format!("beside the `paths` of the need: \"operations\": {}", operations.to_json()))
    }

    fn operation_of(&self, grant: &Grant) -> Option<Operations> {
        let listed = grant.operations.as_ref()?;
        let operation = listed.allows(self.destination, self.message).ok()?;
        Some(listed.only(&operation))
    }
}
