//! What grants protect at a path: captures of its responses, and `fields` of its requests.
//!
//! The captures and `fields` of all grants of an origin apply, whichever grant allows a request:
//! otherwise a guest could choose a grant without them. They are for paths, and servers differ in
//! which paths they take for the same one. So a request is refused if its path resembles a
//! protected one and is not written exactly so.

use super::Policy;
use super::body_fields::FieldRules;
use super::grant::Grant;
use super::operations::{OperationMismatch, Operations};
use super::path::PathPattern;
use crate::destination::Destination;
use crate::place::Message;
use wasm_cpi_checks::Check;

/// The `fields` that apply to a request.
#[derive(Default)]
pub(super) struct AppliedRules<'a> {
    /// The rules, each with the grant that has them.
    pub(super) rules: Vec<(&'a Grant, &'a FieldRules)>,
    /// Grants with `fields` for their operations, and why it is uncertain whether the request names one
    /// of these.
    pub(super) uncertain: Vec<(&'a Grant, OperationMismatch)>,
}

impl Policy {
    /// Returns the `fields` of all grants of the origin that are for a request. Those of a grant that
    /// lists operations are for these operations only. If the body cannot be judged, `message` has its headers alone,
    /// and `body_is_known` is false.
    pub(super) fn field_rules<'a>(
        &'a self,
        destination: &Destination,
        method: &str,
        message: &Message<'_>,
        body_is_known: bool,
    ) -> AppliedRules<'a> {
        let mut found = AppliedRules::default();
        let is_here = |rules: &&FieldRules| rules.is_for(method, destination.path());
        for grant in self.of_origin(destination) {
            let mut here = grant.fields.iter().filter(is_here).peekable();
            if here.peek().is_none() {
                continue;
            }
            let identify = |operations: &Operations| {
                if body_is_known || operations.is_in_head() {
                    operations.identify(destination, message)
                } else {
                    Err(OperationMismatch::UnknownBody)
                }
            };
            let operation = match grant.operations.as_ref().map(identify) {
                None => None,
                Some(Ok(Some(operation))) => Some(operation),
                Some(Ok(None)) => continue,
                Some(Err(mismatch)) => {
                    found.uncertain.push((grant, mismatch));
                    continue;
                }
            };
            let applies = |rules: &&FieldRules| rules.is_for_operation(operation.as_deref());
            found.rules.extend(here.filter(applies).map(|rules| (grant, rules)));
        }
        found
    }

    /// Returns a protected path that a server could confuse with the path of this request. Returns nothing if the
    /// request's own path has the same protection.
    pub(super) fn confusable_path(&self, destination: &Destination, method: &str) -> Option<&PathPattern> {
        let path = destination.path();
        let differs = |protected: &PathPattern| protected.resembles(path) && !protected.matches(path);
        let of_origin = || self.of_origin(destination);
        let captures = || of_origin().flat_map(|grant| &grant.captures).filter(|one| one.is_for_method(method));
        let captured = captures().find(|one| {
            differs(&one.path) && !captures().any(|other| other.path.matches(path) && other.place == one.place)
        });
        let fields = || of_origin().flat_map(|grant| &grant.fields).filter(|one| one.is_for_method(method));
        let judged = fields().find(|one| {
            differs(&one.path) && !fields().any(|other| other.path.matches(path) && other.demands_the_same(one))
        });
        captured.map(|one| &one.path).or(judged.map(|one| &one.path))
    }

    fn of_origin(&self, destination: &Destination) -> impl Iterator<Item = &Grant> {
        self.http.iter().map(AsRef::as_ref).filter(|grant| grant.origin.matches(destination))
    }
}

/// Returns true if the `fields` of one grant apply to a request that another one allows.
pub(super) fn applies(owner: &Grant, allowing: &Grant) -> bool {
    Check::OriginRules.choose(true, owner.id == allowing.id)
}
