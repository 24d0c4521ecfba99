//! The decision on a request, and why a request is denied.

use std::fmt;
use std::sync::Arc;

use super::body_fields::JudgedRequest;
use super::grant::Grant;
use super::operations::Operation;
use wasm_cpi_checks::Check;

/// The decision of [`Policy::judge`](crate::Policy::judge) on one request.
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
        /// The operation of the request, if the grant lists operations.
        operation: Option<Operation>,
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
    /// What would allow the request, for operators: lines to paste into the policy or into the
    /// guest's needs. It shows settings of the policy, so the guest must not see it.
    pub hint: Option<String>,
    /// What else operators should know, and the guest must not; empty if the message says everything.
    pub detail: String,
    /// The operation that was refused, if it is known and its name is a plain one. It is for logs.
    pub operation: Option<String>,
}

/// What a guest learns about a server that no grant can open to it. It is the same for all of them:
/// where they are is part of the agent settings.
pub const CLOSED_SERVER: &str = "no grant can open this server to a guest; the log says why";

/// The kind of a refusal.
///
/// The variants from `Scheme` to `Operation` are in the order of their stages, because
/// [`Policy::judge`](crate::Policy::judge) reports the furthest one.
///
/// [`Policy::judge`](crate::Policy::judge) returns the reasons up to `Operation`. The code that sends requests
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
