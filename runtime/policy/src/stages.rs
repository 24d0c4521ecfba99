//! Compares one grant with a request, in stages: scheme, host, port, method, path, query, operation and fields.

use super::body_fields::{FieldMismatch, JudgedRequest};
use super::grant::Grant;
use super::judge::Request;
use super::operations::{Operation, OperationMismatch, Operations, is_plain};
use super::path::has_parameter;
use super::protections::{AppliedRules, applies};
use super::query::unlisted_parameter;
use super::verdict::DenialReason;
use crate::destination::Destination;
use wasm_cpi_checks::{Check, RefusedBy};

/// The first stage at which a grant does not match a request.
pub(super) struct StageMismatch {
    pub(super) stage: DenialReason,
    /// The check that refused at this stage.
    pub(super) check: Option<Check>,
    /// What is wrong with the query, the operation or a field, if the grant got as far as that.
    pub(super) mismatch: Option<Mismatch>,
}

/// What a grant found in a request that it allows.
#[derive(Clone, Default)]
pub(super) struct Permitted {
    /// What `fields` judged; `None` if no `fields` apply to the request.
    pub(super) rewritten: Option<JudgedRequest>,
    /// The operation, if the grant lists operations.
    pub(super) operation: Option<Operation>,
}

/// What is wrong with the content of a request.
#[derive(Debug)]
pub(super) enum Mismatch {
    /// The parameter of the query that the grant does not list.
    Query(String),
    Operation(OperationMismatch),
    /// The grant whose `fields` refuse the request, and why.
    Field(String, FieldMismatch),
    /// The grant whose `fields` are for operations, and why the request may name one of these.
    Uncertain(String, String),
}

impl StageMismatch {
    pub(super) fn is_about_fields(&self) -> bool {
        matches!(self.mismatch, Some(Mismatch::Field(..) | Mismatch::Uncertain(..)))
    }

    /// Returns the operation that the grant does not list, if its name is a plain one.
    pub(super) fn operation(&self) -> Option<&str> {
        match &self.mismatch {
            Some(Mismatch::Operation(OperationMismatch::NotListed(name))) if is_plain(name) => Some(name),
            _ => None,
        }
    }
}

impl RefusedBy for StageMismatch {
    fn refused_by(self, check: Check) -> StageMismatch {
        StageMismatch { check: self.check.or(Some(check)), ..self }
    }
}

impl Grant {
    /// Returns what was found in a request that the grant allows.
    /// `hides_values` is true if grants of the origin hide values of its responses: then no parameter is allowed
    /// that the grant does not list. `rules` are the `fields` of the origin that are for the request.
    pub(super) fn allows(
        &self,
        request: &Request<'_>,
        hides_values: bool,
        rules: &AppliedRules<'_>,
    ) -> Result<Permitted, StageMismatch> {
        let Request { destination, method, message, .. } = *request;
        let at = |stage| move || StageMismatch { stage, check: None, mismatch: None };
        Check::GrantScheme.ensure(self.origin.scheme == destination.scheme(), at(DenialReason::Scheme))?;
        Check::GrantHost.ensure(self.origin.host.matches(destination.host()), at(DenialReason::Host))?;
        Check::GrantPort.ensure(self.origin.port == destination.port(), at(DenialReason::Port))?;
        Check::GrantMethod.ensure(self.methods.iter().any(|granted| granted == method), at(DenialReason::Method))?;
        let path = self.paths.iter().any(|granted| granted.matches(destination.path()));
        Check::GrantPath.ensure(path, at(DenialReason::Path))?;
        let limits_query = self.operations.as_ref().is_some_and(Operations::limits_query);
        let listed = self.query.as_deref().or((hides_values || limits_query).then_some(&[]));
        // Servers read parameters in the path as those of the query, which `fields` may judge and a form must not have.
        let in_form = self.operations.as_ref().is_some_and(Operations::is_in_form);
        let judged = rules.rules.iter().any(|(owner, rules)| applies(owner, self) && rules.judges_query());
        let in_path = (listed.is_some() || in_form || judged) && self.has_path_parameter(destination.path());
        let unlisted = listed.and_then(|listed| unlisted_parameter(destination.query(), listed));
        let unlisted = unlisted.or_else(|| in_path.then(|| ";".to_owned()));
        Check::GrantQuery.reject(unlisted, |parameter| StageMismatch {
            mismatch: Some(Mismatch::Query(parameter)),
            ..at(DenialReason::Query)()
        })?;
        let operation = self.operation_of(request)?;
        let uncertain = rules.uncertain.iter().find(|(owner, _)| applies(owner, self));
        Check::FieldOperation.reject(uncertain, |(owner, mismatch)| {
            let operations = owner.operations.as_ref().map(|operations| operations.allow.join(" "));
            let why = format!("{}, {mismatch}", operations.unwrap_or_default());
            StageMismatch {
                stage: DenialReason::Operation,
                check: Some(Check::FieldOperation),
                mismatch: Some(Mismatch::Uncertain(owner.id.clone(), why)),
            }
        })?;
        let mut rewritten: Option<JudgedRequest> = None;
        for (owner, rules) in rules.rules.iter().filter(|(owner, _)| applies(owner, self)) {
            let judged = rules.judge(destination.query(), message).map_err(|mismatch| StageMismatch {
                stage: DenialReason::Operation,
                check: Some(mismatch.check()),
                mismatch: Some(Mismatch::Field(owner.id.clone(), mismatch)),
            })?;
            rewritten = Some(match rewritten {
                None => judged,
                Some(before) => before.and(judged),
            });
        }
        Ok(Permitted { rewritten, operation })
    }

    /// Returns the operation of a request, which must be one that the grant allows; `None` if the grant lists
    /// none.
    fn operation_of(&self, request: &Request<'_>) -> Result<Option<Operation>, StageMismatch> {
        let Some(operations) = &self.operations else { return Ok(None) };
        match operations.allows(request.destination, request.message) {
            Ok(name) => Ok(Some(operations.operation(name))),
            Err(mismatch) => {
                Check::GrantOperation.refuse(|| StageMismatch {
                    stage: DenialReason::Operation,
                    check: mismatch.check(),
                    mismatch: Some(Mismatch::Operation(mismatch)),
                })?;
                Ok(None)
            }
        }
    }

    /// Returns true if servers could read parameters in the path as those of the query, and the grant's paths do
    /// not have them themselves.
    fn has_path_parameter(&self, path: &str) -> bool {
        let mut granted = self.paths.iter().filter(|granted| granted.matches(path));
        has_parameter(path) && !granted.any(|granted| has_parameter(&granted.to_string()))
    }

    /// Orders the grants that allow a request; the most specific one is the greatest.
    pub(super) fn specificity(&self, destination: &Destination) -> (bool, (usize, usize, bool), bool) {
        let paths = self.paths.iter().filter(|path| path.matches(destination.path()));
        let path = paths.map(|path| path.specificity()).max().unwrap_or_default();
        (!self.origin.is_wildcard(), path, self.operations.is_some())
    }
}
