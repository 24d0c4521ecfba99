//! The verdict on one request: allowed by which grant, or denied and why.
//!
//! Both keys must turn: a grant of the operator and a need of the module. The
//! reason is the furthest stage that any grant got to, so that it names what is
//! really missing. Guest error, audit line and tests all show this value.

use std::fmt;
use std::sync::Arc;

use super::Policy;
use super::forbidden::Endpoint;
use super::grant::Grant;
use super::head::METHODS;
use super::hint::paste_ready;
use super::slots::Operations;
use crate::holes::Check;
use crate::net::destination::Destination;
use crate::place::{Message, Place};

#[derive(Debug)]
pub enum Verdict {
    Allowed(Arc<Grant>),
    Denied(Denial),
    /// What was kept of the policy cannot be read.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub reason: DenialReason,
    /// Says what was refused and what to do; for what the module declares, with
    /// a grant to paste.
    pub message: String,
}

/// In the order in which they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DenialReason {
    Undeclared,
    Scheme,
    Host,
    Port,
    Method,
    Path,
    Operation,
    Address,
    Header,
    Slot,
    Credential,
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
    pub fn judge(&self, destination: &Destination, method: &str, message: &Message<'_>) -> Verdict {
        let Some(settled) = &self.settled else {
            return self.judge_by(&self.http, destination, method, message);
        };
        let judged = settled.near(destination, &self.http).and_then(|near| {
            match self.judge_by(&near, destination, method, message) {
                // None of the others can allow it; they can say what is missing.
                Verdict::Denied(_) => {
                    settled.all(&self.http).map(|all| self.judge_by(&all, destination, method, message))
                }
                allowed => Ok(allowed),
            }
        });
        judged.unwrap_or_else(Verdict::Unknown)
    }

    fn judge_by(
        &self,
        grants: &[Arc<Grant>],
        destination: &Destination,
        method: &str,
        message: &Message<'_>,
    ) -> Verdict {
        let deny = |reason, why: String| {
            // Any other text is the guest's, and would stand where it could pass for ours.
            let shown = if METHODS.contains(&method) { method } else { "this method at" };
            let what = format!("the policy refuses {shown} {destination}: {why}");
            Verdict::Denied(Denial { reason, message: what })
        };
        let is_here = |one: &&Endpoint| Check::EndpointByName.on() && one.is(destination.host(), destination.port());
        if let Some(endpoint) = self.forbidden.iter().find(is_here) {
            return deny(DenialReason::Host, format!("this is {}, which no grant can open to a guest", endpoint.what));
        }
        let needs = match &self.declared {
            None if self.trust_undeclared || !Check::NeedsAbsent.on() => None,
            None => {
                let why = "the module declares no needs; use a module that does, or set \"trust_undeclared\": true";
                return deny(DenialReason::Undeclared, why.into());
            }
            Some(needs) => {
                let each = needs.iter().map(|one| (one, one.declares(destination, method)));
                Some(each.flat_map(|(one, paths)| paths.map(move |path| (one, path))).collect::<Vec<_>>())
            }
        };
        let undeclared = needs.as_ref().is_some_and(Vec::is_empty);
        let judged: Vec<(&Arc<Grant>, Result<(), Failed>)> =
            grants.iter().map(|grant| (grant, grant.allows(destination, method, message))).collect();
        let allowing = judged.iter().filter(|(_, verdict)| verdict.is_ok()).map(|(grant, _)| *grant);
        // Of equals the first: `max_by_key` would take the last.
        let best = allowing.rev().max_by_key(|grant| grant.specificity(destination));
        if let Some(grant) = best {
            if undeclared && Check::NeedsHttp.on() {
                let why = format!("grant `{}` allows it, but the module's needs do not declare it", grant.id);
                return deny(DenialReason::Undeclared, format!("{why}; the module's author has to"));
            }
            return Verdict::Allowed(Arc::clone(grant));
        }
        let failed = || judged.iter().filter_map(|(grant, verdict)| Some((grant.as_ref(), verdict.as_ref().err()?)));
        let reason = failed().map(|(_, failed)| failed.stage).max().unwrap_or(DenialReason::Undeclared);
        let nearest: Vec<(&Grant, &Failed)> = failed().filter(|(_, failed)| failed.stage == reason).collect();
        let mut declaring = needs.iter().flatten().filter(|_| reason != DenialReason::Operation);
        let hint = declaring.find_map(|(one, path)| paste_ready(one, path, destination, method, grants));
        let remedy = match hint {
            Some(grant) => format!("to allow it, add this, asked for by the guest, to the policy's \"http\": {grant}"),
            None if undeclared => "the module's needs do not declare it either".to_owned(),
            None => "a grant in the policy's \"http\" would have to name it".to_owned(),
        };
        deny(reason, format!("{}; {remedy}", explain(reason, &nearest, destination)))
    }
}

/// The stage at which a grant did not match.
struct Failed {
    stage: DenialReason,
    detail: String,
}

impl Grant {
    fn allows(&self, destination: &Destination, method: &str, message: &Message<'_>) -> Result<(), Failed> {
        let fail = |stage| Err(Failed { stage, detail: String::new() });
        if Check::GrantScheme.on() && self.origin.scheme != destination.scheme() {
            fail(DenialReason::Scheme)
        } else if Check::GrantHost.on() && !self.origin.host.matches(destination.host()) {
            fail(DenialReason::Host)
        } else if Check::GrantPort.on() && self.origin.port != destination.port() {
            fail(DenialReason::Port)
        } else if Check::GrantMethod.on() && !self.methods.iter().any(|granted| granted == method) {
            fail(DenialReason::Method)
        } else if Check::GrantPath.on() && !self.paths.iter().any(|granted| granted.matches(destination.path())) {
            fail(DenialReason::Path)
        } else if let Some(operations) = self.operations.as_ref().filter(|_| Check::GrantOperation.on()) {
            operations.allows(destination, message).map_err(|detail| Failed { stage: DenialReason::Operation, detail })
        } else {
            Ok(())
        }
    }

    /// How much a grant that allows the request says about it.
    fn specificity(&self, destination: &Destination) -> (bool, (usize, usize, bool)) {
        let paths = self.paths.iter().filter(|path| path.matches(destination.path()));
        (!self.origin.is_wildcard(), paths.map(|path| path.specificity()).max().unwrap_or_default())
    }
}

impl Operations {
    fn allows(&self, destination: &Destination, message: &Message<'_>) -> Result<(), String> {
        // Servers that take parameters from the query too would act on that one.
        if let (Place::Form(field), Some(query)) = (&self.place, destination.query())
            && Check::OperationInQuery.on()
            && url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name.eq_ignore_ascii_case(field))
        {
            return Err(format!("the query names `{field}` as well"));
        }
        match self.place.read_plainly(message) {
            Ok(Some(operation)) if self.allow.contains(&operation) => Ok(()),
            Ok(Some(operation)) => Err(format!("not {}", quoted(&operation))),
            Ok(None) => Err(format!("and the request has none in `{}`", self.place)),
            Err(error) => Err(format!("and the request's cannot be read: {error}")),
        }
    }
}

/// An operation's name if it looks like one: it may be anything, a seal included.
fn quoted(operation: &str) -> String {
    let plain = operation.len() <= 64 && operation.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
    if plain { format!("`{operation}`") } else { "what the request asks for".to_owned() }
}

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
        DenialReason::Operation => grants("the origin's grants allow other operations", &|grant, failed| {
            let allow = grant.operations.as_ref().map(|operations| operations.allow.join(" "));
            format!("{}, {}", allow.unwrap_or_default(), failed.detail)
        }),
        _ => "it grants no HTTP at all".to_owned(),
    }
}
