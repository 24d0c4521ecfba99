//! The verdict on one request: which grant allows it, or why it is denied.
//!
//! A request is allowed only if the operator grants it and the module declares it. Each grant
//! is compared in stages (scheme, host, port, method, path, query, operation), and the reason of a
//! denial is the furthest stage that any grant reached, so that it names what is missing.
//! The guest's error, the audit log and the tests all show this reason.

use std::fmt;
use std::sync::Arc;

use super::Policy;
use super::answers::unlisted_parameter;
use super::forbidden::Endpoint;
use super::grant::Grant;
use super::paste_ready::grant_to_paste;
use super::request_head::METHODS;
use super::slots::Operations;
use crate::destination::Destination;
use crate::place::{Message, Place, PlaceError};
use wasm_cpi_checks::{Check, RefusedBy};

/// The decision of [`Policy::judge`] on one request.
#[derive(Debug)]
pub enum Verdict {
    /// The request may be sent. Of several grants that allow it this is the most specific one,
    /// and its credentials, slots and TLS settings apply.
    Allowed(Arc<Grant>),
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
    /// One sentence for people that says what is refused and what to do. For a request that
    /// the module declares it ends with a grant that can be pasted into the policy.
    pub message: String,
}

/// The kind of a refusal.
///
/// The variants from `Scheme` to `Operation` are in the order of their stages, because
/// [`Policy::judge`] reports the furthest one.
///
/// [`Policy::judge`] returns the reasons up to `Operation`. The code that sends requests
/// decides on the others, with rules and data of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DenialReason {
    /// The module's needs do not declare the request, or the policy grants no HTTP at all.
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
    /// The grant allows only some operations, and the request does not name one of them.
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
    /// the headers and body in which the operation of an API with a single path is looked up.
    /// The caller still has to apply the address rule once the host is resolved.
    pub fn judge(&self, destination: &Destination, method: &str, message: &Message<'_>) -> Verdict {
        let deny = |check, reason, why: String| {
            // Any other text comes from the guest, and could be mistaken for a part of this message.
            let shown = if METHODS.contains(&method) { method } else { "this method at" };
            let what = format!("the policy refuses {shown} {destination}: {why}");
            Verdict::Denied(Denial { reason, check, message: what })
        };
        let is_here = |one: &&Endpoint| Check::EndpointByName.refuses(one.is(destination.host(), destination.port()));
        if let Some(endpoint) = self.forbidden.iter().find(is_here) {
            let why = format!("this is {}, which no grant can open to a guest", endpoint.what);
            return deny(Check::EndpointByName, DenialReason::Host, why);
        }
        let needs = match &self.declared {
            None if Check::NeedsAbsent.refuses(!self.trust_undeclared) => {
                let why = "the module declares no needs; use a module that does, or set \"trust_undeclared\": true";
                return deny(Check::NeedsAbsent, DenialReason::Undeclared, why.into());
            }
            None => None,
            Some(needs) => {
                let each = needs.iter().map(|one| (one, one.declares(destination, method)));
                Some(each.flat_map(|(one, paths)| paths.map(move |path| (one, path))).collect::<Vec<_>>())
            }
        };
        let cleaned = self.cleaning(destination).applies;
        let undeclared = needs.as_ref().is_some_and(Vec::is_empty);
        let judged: Vec<(&Arc<Grant>, Result<(), Failed>)> =
            self.http.iter().map(|grant| (grant, grant.allows(destination, method, message, cleaned))).collect();
        let allowing = judged.iter().filter(|(_, verdict)| verdict.is_ok()).map(|(grant, _)| *grant);
        // Of equals the first: `max_by_key` would take the last.
        let best = allowing.rev().max_by_key(|grant| grant.specificity(destination));
        if let Some(grant) = best {
            if Check::NeedsHttp.refuses(undeclared) {
                let why = format!("grant `{}` allows it, but the module's needs do not declare it", grant.id);
                let remedy = "the module's author has to declare it";
                return deny(Check::NeedsHttp, DenialReason::Undeclared, format!("{why}; {remedy}"));
            }
            return Verdict::Allowed(Arc::clone(grant));
        }
        let failed = || judged.iter().filter_map(|(grant, verdict)| Some((grant.as_ref(), verdict.as_ref().err()?)));
        let reason = failed().map(|(_, failed)| failed.stage).max().unwrap_or(DenialReason::Undeclared);
        let nearest: Vec<(&Grant, &Failed)> = failed().filter(|(_, failed)| failed.stage == reason).collect();
        // Without any grant, none names the host.
        let check = nearest.first().and_then(|(_, failed)| failed.check).unwrap_or(Check::GrantHost);
        let mut declaring =
            needs.iter().flatten().filter(|_| !matches!(reason, DenialReason::Query | DenialReason::Operation));
        let hint = declaring.find_map(|(one, path)| grant_to_paste(one, path, destination, method, &self.http));
        let remedy = match hint {
            Some(grant) => format!("to allow it, add this, asked for by the guest, to the policy's \"http\": {grant}"),
            None if reason == DenialReason::Query => {
                "add it to the grant's `query`, unless it filters by values that the guest must not see".to_owned()
            }
            None if undeclared => "the module's needs do not declare it either".to_owned(),
            None => "a grant in the policy's \"http\" would have to name it".to_owned(),
        };
        deny(check, reason, format!("{}; {remedy}", explain(reason, &nearest, destination)))
    }
}

/// The first stage at which a grant does not match a request.
struct Failed {
    stage: DenialReason,
    /// The check that refused at this stage.
    check: Option<Check>,
    /// What is wrong with the operation, if the grant got as far as that.
    operation: Option<OperationMismatch>,
    /// The parameter of the query that the grant does not list.
    parameter: Option<String>,
}

/// The reason why the operation of a request is not one that a grant allows. The messages follow
/// the list of the allowed operations.
#[derive(Debug, thiserror::Error)]
enum OperationMismatch {
    /// The query has a parameter with the name of the field in the body. A server that takes
    /// parameters from the query as well would act on that one.
    #[error("the query names `{field}` as well")]
    InQuery { field: String },
    /// The grant does not list the operation.
    #[error("not {}", quoted(.0))]
    NotListed(String),
    /// The request does not name an operation.
    #[error("and the request has none in `{0}`")]
    Absent(Place),
    /// The place of the operation cannot be read.
    #[error("and the request's cannot be read: {0}")]
    Unreadable(#[source] PlaceError),
}

impl RefusedBy for Failed {
    fn refused_by(self, check: Check) -> Failed {
        Failed { check: self.check.or(Some(check)), ..self }
    }
}

impl OperationMismatch {
    /// Returns the check that refuses the operation, if it is another one than that of the stage.
    fn check(&self) -> Option<Check> {
        match self {
            OperationMismatch::InQuery { .. } => Some(Check::OperationInQuery),
            OperationMismatch::NotListed(_) | OperationMismatch::Absent(_) => None,
            OperationMismatch::Unreadable(error) => error.check(),
        }
    }
}

impl Grant {
    /// `cleaned` is true if answers of the origin are cleaned, so that no parameter is allowed that
    /// the grant does not list.
    fn allows(
        &self,
        destination: &Destination,
        method: &str,
        message: &Message<'_>,
        cleaned: bool,
    ) -> Result<(), Failed> {
        let at = |stage| move || Failed { stage, check: None, operation: None, parameter: None };
        Check::GrantScheme.ensure(self.origin.scheme == destination.scheme(), at(DenialReason::Scheme))?;
        Check::GrantHost.ensure(self.origin.host.matches(destination.host()), at(DenialReason::Host))?;
        Check::GrantPort.ensure(self.origin.port == destination.port(), at(DenialReason::Port))?;
        Check::GrantMethod.ensure(self.methods.iter().any(|granted| granted == method), at(DenialReason::Method))?;
        let path = self.paths.iter().any(|granted| granted.matches(destination.path()));
        Check::GrantPath.ensure(path, at(DenialReason::Path))?;
        let listed = self.query.as_deref().or(cleaned.then_some(&[]));
        let unlisted = listed.and_then(|listed| unlisted_parameter(destination.query(), listed));
        Check::GrantQuery
            .reject(unlisted, |parameter| Failed { parameter: Some(parameter), ..at(DenialReason::Query)() })?;
        let Some(operations) = &self.operations else { return Ok(()) };
        Check::GrantOperation.reject(operations.allows(destination, message).err(), |mismatch| Failed {
            stage: DenialReason::Operation,
            check: mismatch.check(),
            operation: Some(mismatch),
            parameter: None,
        })
    }

    /// Orders the grants that allow a request; the most specific one is the greatest.
    fn specificity(&self, destination: &Destination) -> (bool, (usize, usize, bool)) {
        let paths = self.paths.iter().filter(|path| path.matches(destination.path()));
        (!self.origin.is_wildcard(), paths.map(|path| path.specificity()).max().unwrap_or_default())
    }
}

impl Operations {
    fn allows(&self, destination: &Destination, message: &Message<'_>) -> Result<(), OperationMismatch> {
        if let (Place::Form(field), Some(query)) = (&self.place, destination.query()) {
            let mut names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
            if Check::OperationInQuery.refuses(names.any(|name| name.eq_ignore_ascii_case(field))) {
                return Err(OperationMismatch::InQuery { field: field.clone() });
            }
        }
        match self.place.read_plainly(message) {
            Ok(Some(operation)) if self.allow.contains(&operation) => Ok(()),
            Ok(Some(operation)) => Err(OperationMismatch::NotListed(operation)),
            Ok(None) => Err(OperationMismatch::Absent(self.place.clone())),
            Err(error) => Err(OperationMismatch::Unreadable(error)),
        }
    }
}

/// Quotes the name of an operation only if it looks like one: the guest may have put a seal there.
fn quoted(operation: &str) -> String {
    let plain = operation.len() <= 64 && operation.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
    if plain { format!("`{operation}`") } else { "what the request asks for".to_owned() }
}

/// Describes what the grants that came closest to the request allow.
fn explain(stage: DenialReason, nearest: &[(&Grant, &Failed)], destination: &Destination) -> String {
    let grants = |what: &str, show: &dyn Fn(&Grant, &Failed) -> String| {
        let each: Vec<String> =
            nearest.iter().take(4).map(|(grant, failed)| format!("`{}` {}", grant.id, show(grant, failed))).collect();
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
            let parameter = failed.parameter.as_deref().unwrap_or_default();
            let parameter = if parameter == ";" { "`;`".to_owned() } else { quoted(parameter) };
            format!("{allow}, not {parameter}")
        }),
        DenialReason::Operation => grants("the origin's grants allow other operations", &|grant, failed| {
            let allow = grant.operations.as_ref().map(|operations| operations.allow.join(" "));
            let mismatch = failed.operation.as_ref().map(ToString::to_string);
            format!("{}, {}", allow.unwrap_or_default(), mismatch.unwrap_or_default())
        }),
        _ => "it grants no HTTP at all".to_owned(),
    }
}
