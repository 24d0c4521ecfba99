//! Decides what a guest of wasm-cpi may do.
//!
//! A request of a guest is allowed only if the operator's policy grants it *and* the guest
//! declares it. Everything else is denied, and a policy that is not understood is an error.
//!
//! # What goes in
//!
//! - The text of the operator's `policy.json` and of the presets it names: [`PolicyFile`].
//! - The content of the guest's custom section `bosh-cpi:needs`: [`Needs`].
//! - The properties of the job and of the request's context: [`Properties`].
//! - The servers of BOSH that no grant can open: [`Endpoint`].
//!
//! [`Policy::resolve`] combines them into the [`Policy`] of one call, or returns a list of
//! [`PolicyProblem`]s, each with the key it is at and a remedy.
//!
//! # What comes out
//!
//! - [`Policy::judge`] returns a [`Verdict`] on one request: the [`Grant`] that allows it, with
//!   its credentials, slots and TLS settings, or a [`Denial`] with its [`DenialReason`].
//! - [`addresses::judge`] decides on each address that the host of an allowed request
//!   resolves to.
//! - [`RegistryRights::allows`] decides on the registry settings of an instance.
//! - [`Properties::visible`] returns the properties as the guest sees them: values that the
//!   policy does not expose are replaced by seals.
//! - [`Policy::compare_needs`] lists what a policy lacks for a guest, and [`added_needs()`] what
//!   a new version of a guest needs in addition.
//!
//! # Example
//!
//! ```
//! use serde_json::Map;
//! use wasm_cpi_policy::destination::Destination;
//! use wasm_cpi_policy::place::Message;
//! use wasm_cpi_policy::{DenialReason, Needs, Policy, PolicyFile, Properties, Verdict};
//!
//! let file = PolicyFile::parse(
//!     r#"{"version": 1, "http": [
//!         {"id": "api", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/**"]}
//!     ]}"#,
//! )
//! .unwrap();
//! let needs = Needs::parse(
//!     br#"{"version": 1, "http": [
//!         {"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"]}
//!     ]}"#,
//! )
//! .unwrap();
//! let properties = Properties::merge(Map::new(), Map::new());
//! let policy = Policy::resolve(&file, &properties, Some(&needs), &[], false).unwrap();
//!
//! let servers = Destination::parse("https://api.iaas.test/v1/servers", 2048).unwrap();
//! let message = Message { headers: &[], body: b"" };
//! assert!(matches!(policy.judge(&servers, "GET", &message), Verdict::Allowed { grant, .. } if grant.id == "api"));
//! // The guest declares POST, but the operator does not grant it.
//! let Verdict::Denied(denial) = policy.judge(&servers, "POST", &message) else { unreachable!() };
//! assert_eq!(denial.reason, DenialReason::Method);
//! ```
//!
//! # Pure code
//!
//! The crate computes and does nothing else. It opens no file and no socket, resolves no name,
//! starts no process or thread, and reads neither the clock nor the environment; the caller
//! passes in texts, bytes and lists of addresses. The `clippy.toml` beside `Cargo.toml` rejects
//! the functions and types of the standard library that could do such things.
//!
//! # Modules
//!
//! | modules | content |
//! |---|---|
//! | `file`, `preset`, `object_reader`, `problem` | how a policy file is parsed, and how its problems are reported |
//! | `grant`, `login`, `auth`, `sigv4`, `credentials`, `roles`, `body`, `body_fields`, `operations`, `target`, `tls`, `slots`, `blocks`, `query`, `responses` | the entries of a policy file, as written and as resolved for a call |
//! | `origin`, `path`, `template`, `one_property`, `request_head` | the texts within entries: origins, patterns of paths, texts with `${property}`, methods and header names |
//! | `needs`, `properties`, `expose`, `regions`, `registry`, `forbidden` | what the guest declares, and what limits a policy beside its grants |
//! | `judge`, `verdict`, `stages`, `wording` | the decision on a request, its types, the comparison with one grant, and its words |
//! | `resolve`, `read_back` | a policy file combined with the properties and needs of a call, and its warnings |
//! | `protections`, `hint`, `suggested_grant`, `missing_slot` | what all grants of an origin protect, and the lines that a denial offers |
//! | `comparison`, `added_needs`, `unused_certificates` | comparisons for the operator: needs with grants, needs of two versions, and certificates that no grant uses |
//! | [`destination`], [`addresses`] | the canonical form of a URL, and the classes of IP addresses |
//! | [`place`], [`strict_json`] | reading and writing single values of HTTP messages, and strict JSON |
//! | [`secret`], [`invisible`] | values that must not be logged, and characters that must not be shown |

#![forbid(unsafe_code)]
#![deny(missing_docs)]
// The list is in clippy.toml. Tests may read files and the clock.
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod added_needs;
pub mod addresses;
mod auth;
mod blocks;
mod body;
mod body_fields;
mod comparison;
mod credentials;
pub mod destination;
mod expose;
mod file;
mod forbidden;
mod grant;
mod hint;
pub mod invisible;
mod judge;
mod login;
mod missing_slot;
mod needs;
mod object_reader;
mod one_property;
mod operations;
mod origin;
mod path;
pub mod place;
mod preset;
mod problem;
mod properties;
mod protections;
mod query;
mod read_back;
mod regions;
mod registry;
mod request_head;
mod resolve;
mod responses;
mod roles;
pub mod secret;
mod sigv4;
mod slots;
mod stages;
pub mod strict_json;
mod suggested_grant;
mod target;
mod template;
mod tls;
mod unused_certificates;
mod verdict;
mod wording;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

pub use added_needs::{AddedNeed, added_needs};
pub use auth::Auth;
pub use blocks::Blocks;
pub use body::LoginBody;
pub use body_fields::{FieldRules, JudgedRequest, Pattern, PatternError};
pub use comparison::{ComparedNeed, Comparison};
pub use credentials::{AssumedRole, CredentialSource, Credentials};
pub use expose::{Expose, is_credential_name, looks_like_credential};
pub use file::PolicyFile;
pub use forbidden::Endpoint;
pub use grant::Grant;
pub use login::{Expires, Login, SendToken};
pub use missing_slot::MissingSlot;
pub use needs::{Need, Needs, Restriction};
pub use object_reader::kind as json_kind;
pub use operations::{Operation, OperationPlace, Operations};
pub use origin::{HostPattern, Origin, OriginError, OriginSpec};
pub use path::{PathError, PathPattern};
pub use preset::ReadFile;
pub use problem::PolicyProblem;
pub use properties::{NOT_PROPERTIES, Properties};
pub use regions::{Regions, UnlistedRegion};
pub use registry::{RegistryDenial, RegistryRights};
pub use request_head::{METHODS, is_connection_header, normalize_header_name, normalize_parameter_name};
pub use responses::{ANY, HiddenPlaces};
pub use sigv4::SigV4;
pub use slots::{AGENT, Capture, Slot};
pub use template::{ResolvedText, Template, TemplateError};
pub use tls::{ClientCertificate, Pem, Tls};
pub use verdict::{CLOSED_SERVER, Denial, DenialReason, Verdict};

use crate::destination::{Host, Scheme};
use needs::ResolvedNeed;

/// The policy of one call: the operator's policy with properties filled in, limited to what the
/// guest declares.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The grants in the order of the file, those of presets last.
    pub http: Vec<Arc<Grant>>,
    /// The credentials of signed requests by their names.
    pub credentials: BTreeMap<String, Credentials>,
    /// The logins by their names.
    pub logins: BTreeMap<String, Login>,
    /// The properties that the guest may read.
    pub expose: Expose,
    /// The registry settings that the guest may access.
    pub registry: RegistryRights,
    /// True if the guest may read the stemcell's image: it declares that it does, or it has no
    /// needs section and the operator trusts it.
    pub image: bool,
    trust_undeclared: bool,
    /// The needs of the guest; `None` if it has no needs section.
    declared: Option<Vec<ResolvedNeed>>,
    /// The logins that the guest declares.
    declared_logins: Restriction<Vec<String>>,
    forbidden: Vec<Endpoint>,
    warnings: Vec<PolicyProblem>,
    unreachable: Vec<PolicyProblem>,
}

impl Policy {
    /// Returns what is allowed and still worth a warning, such as secrets sent over http.
    pub fn warnings(&self) -> &[PolicyProblem] {
        &self.warnings
    }

    /// Returns the grants and logins whose own `addresses` exclude the address of their server, each
    /// with the check that refuses all of their requests.
    pub fn unreachable(&self) -> &[PolicyProblem] {
        &self.unreachable
    }

    /// Returns true if the guest declares that it uses the login of this name. A guest without
    /// needs may use every login if the operator trusts it.
    pub fn declares_login(&self, name: &str) -> bool {
        match &self.declared_logins {
            Restriction::Any => self.declared.is_some() || self.trust_undeclared,
            Restriction::Only(names) => names.iter().any(|declared| declared == name),
        }
    }

    /// Returns true if there are tokens or keys that calls obtain and that expire.
    pub fn has_tokens(&self) -> bool {
        !self.logins.is_empty() || self.credentials.values().any(Credentials::are_temporary)
    }

    /// Returns the ports that requests, logins and credentials can connect to, with repetitions.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        let declared = |port: &u16| match &self.declared {
            None => self.trust_undeclared,
            Some(needs) => needs.iter().any(|need| need.may_use(*port)),
        };
        let granted = self.http.iter().map(|grant| grant.origin.port).filter(declared);
        let of_credentials = self.credentials.values().filter_map(|one| match &one.source {
            CredentialSource::Static { .. } => None,
            CredentialSource::Metadata { .. } => Some(Scheme::Http.default_port()),
            CredentialSource::AssumedRole(role) => Some(role.origin.port),
        });
        granted.chain(self.logins.values().map(|login| login.origin.port)).chain(of_credentials)
    }

    /// Returns the TLS settings of all connections that the policy describes.
    pub fn tls_settings(&self) -> impl Iterator<Item = &Tls> {
        let grants = self.http.iter().map(|grant| &grant.tls);
        let roles = self.credentials.values().filter_map(Credentials::assumed_role).map(|role| &role.tls);
        grants.chain(self.logins.values().map(|login| &login.tls)).chain(roles)
    }

    /// Adds endpoints that no grant can open and that are known only in this call.
    pub fn forbid(&mut self, endpoints: Vec<Endpoint>) {
        self.forbidden.extend(endpoints);
    }

    /// Returns what the endpoint at this address is, such as "the registry", if no grant can open
    /// it. The name that was resolved to the address plays no part.
    pub fn forbids(&self, ip: IpAddr, port: u16) -> Option<&str> {
        let host = Host::Ip(ip.to_canonical());
        self.forbidden.iter().find(|endpoint| endpoint.is(&host, port)).map(|endpoint| endpoint.what.as_str())
    }

    /// Returns the DNS names of the endpoints on this port that no grant can open, each with what
    /// it is. The caller resolves them to find out whether a request leads to one of them.
    pub fn forbidden_names(&self, port: u16) -> impl Iterator<Item = (&str, &str)> {
        self.forbidden.iter().filter_map(move |endpoint| Some((endpoint.name_on(port)?, endpoint.what.as_str())))
    }
}
