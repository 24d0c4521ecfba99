//! The verdict on one request: which grant allows it, or why it is denied.
//!
//! A request is allowed only if the operator grants it and the guest declares it. Each grant
//! is compared in stages (scheme, host, port, method, path, query, operation), and the reason of a
//! denial is the furthest stage that any grant reached, so that it names what is missing.
//! The guest's error, the audit log and the tests all show this reason.

use std::sync::Arc;

use serde_json::json;

use super::Policy;
use super::auth::Auth;
use super::forbidden::Endpoint;
use super::grant::Grant;
use super::hint::{Declaring, Hint};
use super::operations::Operation;
use super::request_head::METHODS;
use super::stages::{Permitted, StageMismatch};
use super::verdict::{CLOSED_SERVER, Denial, DenialReason, Verdict};
use super::wording::explain;
use crate::destination::Destination;
use crate::place::Message;
use wasm_cpi_checks::Check;

impl Policy {
    /// Decides on one request. `method` is compared as it is, in upper case, and `message` holds
    /// the headers and body in which the operation of an API with a single path, and fields, are
    /// looked up. The caller still has to apply the address rule once the host is resolved.
    pub fn judge(&self, destination: &Destination, method: &str, message: &Message<'_>) -> Verdict {
        self.decide(&Request { destination, method, message, block_headers: None }, true)
    }

    /// Decides on a request whose body cannot be judged, because it holds a part of the stemcell image. If it is one
    /// block of an upload in blocks, `block_headers` are the headers that the host computes from the block.
    pub fn judge_image(
        &self,
        destination: &Destination,
        method: &str,
        headers: &[(String, String)],
        block_headers: Option<&[String]>,
    ) -> Verdict {
        let message = &Message { headers, body: &[] };
        self.decide(&Request { destination, method, message, block_headers }, false)
    }

    fn decide(&self, request: &Request<'_>, body_is_known: bool) -> Verdict {
        let Request { destination, method, message, .. } = *request;
        let deny = |check, reason, why: String, hint: Option<String>| {
            // Any other text comes from the guest, and could be mistaken for a part of this message.
            let shown = if METHODS.contains(&method) { method } else { "this method at" };
            let what = format!("the policy refuses {shown} {destination}: {why}");
            Denial { reason, check, message: what, hint, detail: String::new(), operation: None }
        };
        let is_here = |one: &&Endpoint| Check::EndpointByName.refuses(one.is(destination.host(), destination.port()));
        if let Some(endpoint) = self.forbidden.iter().find(is_here) {
            let denial = deny(Check::EndpointByName, DenialReason::Host, CLOSED_SERVER.to_owned(), None);
            return Verdict::Denied(Denial { detail: format!("it is {}", endpoint.what), ..denial });
        }
        if self.declared.is_none() && Check::NeedsAbsent.refuses(!self.trust_undeclared) {
            let why = "the guest declares no needs; use a guest that does, or set \"trust_undeclared\": true";
            return Verdict::Denied(deny(Check::NeedsAbsent, DenialReason::Undeclared, why.into(), None));
        }
        if let Some(path) = Check::PathAlike.perform(|| self.confusable_path(destination, method)).flatten() {
            let why = format!(
                "a server could take its path for `{path}`, for which the policy has captures or `fields`; the guest must \
                 write that path exactly so"
            );
            return Verdict::Denied(deny(Check::PathAlike, DenialReason::Path, why, None));
        }
        let rules = self.field_rules(destination, method, message, body_is_known);
        let needs = self.declared.as_ref().map(|needs| request.declaring(needs));
        let hides_values = self.hidden_places(destination).hides_values;
        let judged: Vec<JudgedGrant<'_>> =
            self.http.iter().map(|grant| (grant, grant.allows(request, hides_values, &rules))).collect();
        let allowing = judged.iter().filter_map(|(grant, verdict)| Some((*grant, verdict.as_ref().ok()?)));
        let candidates = allowing.map(|(grant, permitted)| {
            let declared = self.check_declared(grant, request, needs.as_deref());
            Candidate { grant, permitted, declared }
        });
        if let Some(Candidate { grant, permitted, declared }) = most_specific(candidates, destination) {
            let Permitted { rewritten, operation } = permitted.clone();
            let Err(undeclared) = declared else {
                // Another grant may find another operation in the request, at another place.
                let mut named = judged.iter().filter_map(|(_, verdict)| verdict.as_ref().ok()?.operation.as_ref());
                let all_read = named.all(|operation| operation.is_read_only);
                let operation = operation.map(|one| Operation { is_read_only: one.is_read_only && all_read, ..one });
                return Verdict::Allowed { grant: Arc::clone(grant), rewritten, operation };
            };
            let operation = operation.as_ref().and_then(Operation::plain_name).map(str::to_owned);
            let why =
                format!("grant `{}` allows it, but the guest's needs do not declare {}", grant.id, undeclared.what);
            let why = format!("{why}; the guest's author has to declare it");
            let denial = deny(undeclared.check, DenialReason::Undeclared, why, undeclared.hint);
            return Verdict::Denied(Denial { operation, ..denial });
        }
        let failed = || judged.iter().filter_map(|(grant, verdict)| Some((grant.as_ref(), verdict.as_ref().err()?)));
        let reason = failed().map(|(_, failed)| failed.stage).max().unwrap_or(DenialReason::Undeclared);
        let mut nearest: Vec<(&Grant, &StageMismatch)> =
            failed().filter(|(_, failed)| failed.stage == reason).collect();
        // A grant that allows the operation came closer than one that does not.
        if nearest.iter().any(|(_, failed)| failed.is_about_fields()) {
            nearest.retain(|(_, failed)| failed.is_about_fields());
        }
        // Without any grant, none names the host.
        let check = nearest.first().and_then(|(_, failed)| failed.check).unwrap_or(Check::GrantHost);
        let hint = request.hint(reason, &nearest, needs.as_deref(), &self.http);
        let remedy = match &hint {
            Some(Hint::Fields(..)) => "the operator can list it in the grant's `fields`",
            _ if reason == DenialReason::Query => {
                "add it to the grant's `query`, unless it filters by values that the guest must not see"
            }
            _ if needs.as_ref().is_some_and(Vec::is_empty) => "the guest's needs do not declare it either",
            _ => "the operator can add a grant for it to the policy's \"http\"",
        };
        let why = format!("{}; {remedy}", explain(reason, &nearest, destination));
        let operation = nearest.iter().find_map(|(_, failed)| failed.operation()).map(str::to_owned);
        Verdict::Denied(Denial { operation, ..deny(check, reason, why, hint.map(|hint| hint.to_string())) })
    }

    /// Rejects a request that `grant` allows and the guest does not declare, with the part that is missing.
    fn check_declared(
        &self,
        grant: &Grant,
        request: &Request<'_>,
        needs: Option<&[Declaring<'_>]>,
    ) -> Result<(), Undeclared> {
        let Some(needs) = needs else { return Ok(()) };
        if Check::NeedsHttp.refuses(needs.is_empty()) {
            let hint = request.need_line(Some(grant)).map(|line| Hint::Needs(line).to_string());
            return Err(Undeclared { check: Check::NeedsHttp, what: "it".to_owned(), hint });
        }
        if let Some(Auth::Login(name)) = &grant.auth
            && Check::NeedsLogin.refuses(!self.declares_login(name))
        {
            let hint = Hint::Needs(format!("at its top: \"logins\": {}", json!([name]))).to_string();
            return Err(Undeclared { check: Check::NeedsLogin, what: format!("the login `{name}`"), hint: Some(hint) });
        }
        let listed = grant.operations.is_some();
        let declares =
            |(need, _): &Declaring<'_>| need.declares_operation(request.destination, request.message, listed);
        if Check::NeedsOperation.refuses(!needs.is_empty() && !needs.iter().any(declares)) {
            let hint = request.operation_line(grant).map(|line| Hint::Needs(line).to_string());
            return Err(Undeclared { check: Check::NeedsOperation, what: "its operation".to_owned(), hint });
        }
        Ok(())
    }
}

/// A grant, and what it says of a request: what it found in it if it allows it, or why it does not.
type JudgedGrant<'a> = (&'a Arc<Grant>, Result<Permitted, StageMismatch>);

/// A grant that allows a request, with what it found in it, and whether the guest declares the request.
struct Candidate<'a> {
    grant: &'a Arc<Grant>,
    permitted: &'a Permitted,
    declared: Result<(), Undeclared>,
}

/// Returns the most specific of the grants that allow a request. Of equals it is the first. The guest's needs have no
/// part in it: by leaving one out, a guest would choose a wider grant.
fn most_specific<'a>(
    candidates: impl DoubleEndedIterator<Item = Candidate<'a>>,
    destination: &Destination,
) -> Option<Candidate<'a>> {
    let rank = |one: &Candidate<'_>| {
        (Check::GrantSpecific.choose(true, one.declared.is_ok()), one.grant.specificity(destination))
    };
    // `max_by_key` takes the last of equals.
    candidates.rev().max_by_key(rank)
}

/// A request that is judged.
pub(super) struct Request<'a> {
    pub(super) destination: &'a Destination,
    pub(super) method: &'a str,
    pub(super) message: &'a Message<'a>,
    /// The headers that the host computes from the block, if the request is one block of an upload in blocks.
    pub(super) block_headers: Option<&'a [String]>,
}

/// The part of a granted request that the guest does not declare.
struct Undeclared {
    check: Check,
    what: String,
    hint: Option<String>,
}
