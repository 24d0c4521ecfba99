//! The verdict on one request: which grant allows it, or why it is denied.
//!
//! A request is allowed only if the operator grants it and the guest declares it. Each grant
//! is compared in stages (scheme, host, port, method, path, query, operation), and the reason of a
//! denial is the furthest stage that any grant reached, so that it names what is missing.
//! The guest's error, the audit log and the tests all show this reason.

use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::Policy;
use super::auth::Auth;
use super::body_fields::{FieldMismatch, JudgedRequest};
use super::forbidden::Endpoint;
use super::grant::Grant;
use super::hint::{Declaring, Hint};
use super::operations::{OperationMismatch, Operations, quoted};
use super::protections::{AppliedRules, applies};
use super::request_head::METHODS;
use super::responses::unlisted_parameter;
use crate::destination::Destination;
use crate::place::Message;
use wasm_cpi_checks::{Check, RefusedBy};

/// The decision of [`Policy::judge`] on one request.
#[derive(Debug)]
pub enum Verdict {
    /// The request may be sent.
    Allowed {
        /// The grant that allows the request, whose credentials, slots and TLS settings apply. Of
        /// several such grants it is the most specific one.
        grant: Arc<Grant>,
        /// What `fields` judged of the request, as the host has to send it; `None` if no `fields`
        /// apply to the request.
        rewritten: Option<JudgedRequest>,
    },
    /// The request must not be sent.
    Denied(Denial),
}

/// The refusal of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The kind of refusal, for programs: the guest, the audit log and tests.
    pub reason: DenialReason,
    /// The check that refused, for operators. A guest does not see it.
    pub check: Check,
    /// One sentence that says what is refused and why. The guest sees it.
    pub message: String,
    /// What would allow the request, for people: lines to paste into the policy or into the
    /// guest's needs. It shows settings of the policy, so the guest must not see it.
    pub hint: Option<String>,
    /// What else people should know, and the guest must not; empty if the message says everything.
    pub detail: String,
}

/// What a guest learns about a server that no grant can open to it. It is the same for all of them:
/// where they are is part of the agent settings.
pub const CLOSED_SERVER: &str = "no grant can open this server to a guest; the log says why";

/// The kind of a refusal.
///
/// The variants from `Scheme` to `Operation` are in the order of their stages, because
/// [`Policy::judge`] reports the furthest one.
///
/// [`Policy::judge`] returns the reasons up to `Operation`. The code that sends requests
/// decides on the others, with rules and data of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DenialReason {
    /// The guest's needs do not declare the request, or the policy grants no HTTP at all.
    Undeclared,
    /// No grant has the scheme.
    Scheme,
    /// No grant has the host, or the host is an endpoint that no grant can open.
    Host,
    /// The grants for the host have other ports.
    Port,
    /// The grants for the origin do not allow the method.
    Method,
    /// The grants for the origin and method do not allow the path.
    Path,
    /// The grants for the path do not allow a parameter of the query.
    Query,
    /// The grant allows only some operations or fields, and the request does not name one of these
    /// operations, or has other fields.
    Operation,
    /// The host resolves to an address that the grant may not reach.
    Address,
    /// The request sets credentials of its own, or a header that could change what was judged.
    Header,
    /// The request holds a seal in a place where no slot takes it.
    Slot,
    /// The server refuses the credentials of the grant's login.
    Credential,
    /// The response holds a secret, so the guest must not see it.
    Leak,
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DenialReason::Undeclared => "undeclared",
            DenialReason::Scheme => "scheme",
            DenialReason::Host => "host",
            DenialReason::Port => "port",
            DenialReason::Method => "method",
            DenialReason::Path => "path",
            DenialReason::Query => "query",
            DenialReason::Operation => "operation",
            DenialReason::Address => "address",
            DenialReason::Header => "header",
            DenialReason::Slot => "slot",
            DenialReason::Credential => "credential",
            DenialReason::Leak => "leak",
        })
    }
}

impl Policy {
    /// Decides on one request. `method` is compared as it is, in upper case, and `message` holds
    /// the headers and body in which the operation of an API with a single path, and fields, are
    /// looked up. The caller still has to apply the address rule once the host is resolved.
    pub fn judge(&self, destination: &Destination, method: &str, message: &Message<'_>) -> Verdict {
        self.decide(destination, method, message, true)
    }

    /// Decides on a request whose body cannot be judged, because it holds a part of the stemcell image.
    pub fn judge_image(&self, destination: &Destination, method: &str, headers: &[(String, String)]) -> Verdict {
        self.decide(destination, method, &Message { headers, body: &[] }, false)
    }

    fn decide(&self, destination: &Destination, method: &str, message: &Message<'_>, body_is_known: bool) -> Verdict {
        let deny = |check, reason, why: String, hint: Option<String>| {
            // Any other text comes from the guest, and could be mistaken for a part of this message.
            let shown = if METHODS.contains(&method) { method } else { "this method at" };
            let what = format!("the policy refuses {shown} {destination}: {why}");
            Verdict::Denied(Denial { reason, check, message: what, hint, detail: String::new() })
        };
        let is_here = |one: &&Endpoint| Check::EndpointByName.refuses(one.is(destination.host(), destination.port()));
        if let Some(endpoint) = self.forbidden.iter().find(is_here) {
            return match deny(Check::EndpointByName, DenialReason::Host, CLOSED_SERVER.to_owned(), None) {
                Verdict::Denied(denial) => {
                    Verdict::Denied(Denial { detail: format!("it is {}", endpoint.what), ..denial })
                }
                allowed => allowed,
            };
        }
        if self.declared.is_none() && Check::NeedsAbsent.refuses(!self.trust_undeclared) {
            let why = "the guest declares no needs; use a guest that does, or set \"trust_undeclared\": true";
            return deny(Check::NeedsAbsent, DenialReason::Undeclared, why.into(), None);
        }
        if let Some(path) = Check::PathAlike.perform(|| self.resembled(destination, method)).flatten() {
            let why = format!(
                "a server could take its path for `{path}`, for which the policy has captures or `fields`; the guest must \
                 write that path exactly so"
            );
            return deny(Check::PathAlike, DenialReason::Path, why, None);
        }
        let request = Request { destination, method, message };
        let rules = self.field_rules(destination, method, body_is_known.then_some(message));
        let needs = self.declared.as_ref().map(|needs| request.declaring(needs));
        let hides_values = self.hidden_places(destination).hides_values;
        let judged: Vec<JudgedGrant<'_>> =
            self.http.iter().map(|grant| (grant, grant.allows(&request, hides_values, &rules))).collect();
        let allowing = judged.iter().filter_map(|(grant, verdict)| Some((*grant, verdict.as_ref().ok()?)));
        // The guest's needs have no part in it: by leaving one out, a guest would choose a wider grant.
        let ranked = |(grant, _, declared): &(&Arc<Grant>, &Option<JudgedRequest>, Result<(), Undeclared>)| {
            (Check::GrantSpecific.choose(true, declared.is_ok()), grant.specificity(destination))
        };
        // Of equals the first: `max_by_key` would take the last.
        let declared = allowing
            .map(|(grant, rewritten)| (grant, rewritten, self.check_declared(grant, &request, needs.as_deref())));
        match declared.rev().max_by_key(ranked) {
            Some((grant, rewritten, Ok(()))) => {
                return Verdict::Allowed { grant: Arc::clone(grant), rewritten: rewritten.clone() };
            }
            Some((grant, _, Err(undeclared))) => {
                let why =
                    format!("grant `{}` allows it, but the guest's needs do not declare {}", grant.id, undeclared.what);
                let why = format!("{why}; the guest's author has to declare it");
                return deny(undeclared.check, DenialReason::Undeclared, why, undeclared.hint);
            }
            None => {}
        }
        let failed = || judged.iter().filter_map(|(grant, verdict)| Some((grant.as_ref(), verdict.as_ref().err()?)));
        let reason = failed().map(|(_, failed)| failed.stage).max().unwrap_or(DenialReason::Undeclared);
        let mut nearest: Vec<(&Grant, &Failed)> = failed().filter(|(_, failed)| failed.stage == reason).collect();
        // A grant that allows the operation came closer than one that does not.
        if nearest.iter().any(|(_, failed)| failed.is_about_fields()) {
            nearest.retain(|(_, failed)| failed.is_about_fields());
        }
        // Without any grant, none names the host.
        let check = nearest.first().and_then(|(_, failed)| failed.check).unwrap_or(Check::GrantHost);
        let hint = request.hint(reason, &nearest, needs.as_deref(), &self.http);
        let remedy = match &hint {
            Some(Hint::Fields(..)) => "the grant's `fields` would have to list it",
            _ if reason == DenialReason::Query => {
                "add it to the grant's `query`, unless it filters by values that the guest must not see"
            }
            _ if needs.as_ref().is_some_and(Vec::is_empty) => "the guest's needs do not declare it either",
            _ => "a grant in the policy's \"http\" would have to name it",
        };
        let why = format!("{}; {remedy}", explain(reason, &nearest, destination));
        deny(check, reason, why, hint.map(|hint| hint.to_string()))
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

/// A grant, and what it says of a request: what `fields` judged if it allows it, or why it does not.
type JudgedGrant<'a> = (&'a Arc<Grant>, Result<Option<JudgedRequest>, Failed>);

/// A request that is judged.
pub(super) struct Request<'a> {
    pub(super) destination: &'a Destination,
    pub(super) method: &'a str,
    pub(super) message: &'a Message<'a>,
}

/// The part of a granted request that the guest does not declare.
struct Undeclared {
    check: Check,
    what: String,
    hint: Option<String>,
}

/// The first stage at which a grant does not match a request.
pub(super) struct Failed {
    pub(super) stage: DenialReason,
    /// The check that refused at this stage.
    check: Option<Check>,
    /// What is wrong with the query, the operation or a field, if the grant got as far as that.
    pub(super) mismatch: Option<Mismatch>,
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

impl Failed {
    fn is_about_fields(&self) -> bool {
        matches!(self.mismatch, Some(Mismatch::Field(..) | Mismatch::Uncertain(..)))
    }
}

impl RefusedBy for Failed {
    fn refused_by(self, check: Check) -> Failed {
        Failed { check: self.check.or(Some(check)), ..self }
    }
}

impl Grant {
    /// Returns what `fields` judged of a request that the grant allows; `None` if no `fields` apply to it.
    /// `hides_values` is true if grants of the origin hide values of its responses: then no parameter is allowed
    /// that the grant does not list. `rules` are the `fields` of the origin that are for the request.
    fn allows(
        &self,
        request: &Request<'_>,
        hides_values: bool,
        rules: &AppliedRules<'_>,
    ) -> Result<Option<JudgedRequest>, Failed> {
        let Request { destination, method, message } = *request;
        let at = |stage| move || Failed { stage, check: None, mismatch: None };
        Check::GrantScheme.ensure(self.origin.scheme == destination.scheme(), at(DenialReason::Scheme))?;
        Check::GrantHost.ensure(self.origin.host.matches(destination.host()), at(DenialReason::Host))?;
        Check::GrantPort.ensure(self.origin.port == destination.port(), at(DenialReason::Port))?;
        Check::GrantMethod.ensure(self.methods.iter().any(|granted| granted == method), at(DenialReason::Method))?;
        let path = self.paths.iter().any(|granted| granted.matches(destination.path()));
        Check::GrantPath.ensure(path, at(DenialReason::Path))?;
        let in_key = self.operations.as_ref().is_some_and(Operations::is_json_key);
        let listed = self.query.as_deref().or((hides_values || in_key).then_some(&[]));
        let unlisted = listed.and_then(|listed| {
            let in_path = self.has_path_parameter(destination.path()).then(|| ";".to_owned());
            unlisted_parameter(destination.query(), listed).or(in_path)
        });
        Check::GrantQuery.reject(unlisted, |parameter| Failed {
            mismatch: Some(Mismatch::Query(parameter)),
            ..at(DenialReason::Query)()
        })?;
        let operation = self.operations.as_ref().map(|operations| operations.allows(destination, message));
        Check::GrantOperation.reject(operation.and_then(Result::err), |mismatch| Failed {
            stage: DenialReason::Operation,
            check: mismatch.check(),
            mismatch: Some(Mismatch::Operation(mismatch)),
        })?;
        let uncertain = rules.uncertain.iter().find(|(owner, _)| owner.id != self.id && applies(owner, self));
        Check::FieldOperation.reject(uncertain, |(owner, mismatch)| {
            let operations = owner.operations.as_ref().map(|operations| operations.allow.join(" "));
            let why = format!("{}, {mismatch}", operations.unwrap_or_default());
            Failed {
                stage: DenialReason::Operation,
                check: Some(Check::FieldOperation),
                mismatch: Some(Mismatch::Uncertain(owner.id.clone(), why)),
            }
        })?;
        let mut rewritten: Option<JudgedRequest> = None;
        for (owner, rules) in rules.rules.iter().filter(|(owner, _)| applies(owner, self)) {
            let judged = rules.judge(destination.query(), message).map_err(|mismatch| Failed {
                stage: DenialReason::Operation,
                check: Some(mismatch.check()),
                mismatch: Some(Mismatch::Field(owner.id.clone(), mismatch)),
            })?;
            rewritten = Some(match rewritten {
                None => judged,
                Some(before) => before.and(judged),
            });
        }
        Ok(rewritten)
    }

    /// Returns true if the path has parameters behind a `;`, which the grant's paths do not have
    /// themselves. Servers read them as parameters of the query.
    fn has_path_parameter(&self, path: &str) -> bool {
        let written = |text: &str| text.contains(';') || text.to_ascii_lowercase().contains("%3b");
        let granted = self.paths.iter().filter(|granted| granted.matches(path));
        written(path) && !granted.into_iter().any(|granted| written(&granted.to_string()))
    }

    /// Orders the grants that allow a request; the most specific one is the greatest.
    fn specificity(&self, destination: &Destination) -> (bool, (usize, usize, bool), bool) {
        let paths = self.paths.iter().filter(|path| path.matches(destination.path()));
        let path = paths.map(|path| path.specificity()).max().unwrap_or_default();
        (!self.origin.is_wildcard(), path, self.operations.is_some())
    }
}

/// Describes what the grants that came closest to the request allow.
fn explain(stage: DenialReason, nearest: &[(&Grant, &Failed)], destination: &Destination) -> String {
    let grants = |what: &str, show: &dyn Fn(&Grant, &Failed) -> String| {
        let named = |(grant, failed): &(&Grant, &Failed)| match &failed.mismatch {
            Some(Mismatch::Field(owner, _) | Mismatch::Uncertain(owner, _)) => {
                format!("`{owner}` {}", show(grant, failed))
            }
            _ => format!("`{}` {}", grant.id, show(grant, failed)),
        };
        let mut each: Vec<String> = nearest.iter().take(4).map(named).collect();
        each.dedup();
        format!("{what}: {}", each.join(", "))
    };
    match stage {
        DenialReason::Scheme => format!("no grant is for {}://", destination.scheme().as_str()),
        DenialReason::Host => format!("no grant names the host {}", destination.host()),
        DenialReason::Port => {
            grants("the host's grants are for other ports", &|grant, _| grant.origin.port.to_string())
        }
        DenialReason::Method => grants("the origin's grants allow other methods", &|grant, _| grant.methods.join(" ")),
        DenialReason::Path => grants("the origin's grants allow other paths", &|grant, _| {
            let paths: Vec<String> = grant.paths.iter().take(8).map(ToString::to_string).collect();
            paths.join(" ")
        }),
        DenialReason::Query => grants("the origin's grants allow other query parameters", &|grant, failed| {
            let allow = grant.query.as_deref().unwrap_or_default().join(" ");
            let allow = if allow.is_empty() { "none".to_owned() } else { allow };
            let Some(Mismatch::Query(parameter)) = &failed.mismatch else { return allow };
            let parameter = if parameter == ";" { "`;`".to_owned() } else { quoted(parameter) };
            format!("{allow}, not {parameter}")
        }),
        DenialReason::Operation => grants("the origin's grants allow other operations or fields", &|grant, failed| {
            let allow = grant.operations.as_ref().map(|operations| operations.allow.join(" "));
            match &failed.mismatch {
                Some(Mismatch::Operation(mismatch)) => format!("{}, {mismatch}", allow.unwrap_or_default()),
                Some(Mismatch::Field(_, mismatch)) => format!("limits the fields of the request: {mismatch}"),
                Some(Mismatch::Uncertain(_, why)) => format!("limits the fields of {why}"),
                Some(Mismatch::Query(_)) | None => allow.unwrap_or_default(),
            }
        }),
        _ => "it grants no HTTP at all".to_owned(),
    }
}
