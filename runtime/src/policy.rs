//! What the operator lets a guest do: the grammar of `policy.json`, the module's
//! needs, and the verdict on each request.
//!
//! Deny by default: what is absent is refused, and what is not understood is an
//! error. Effective is what the operator grants and the module declares. Pure
//! code: no IO, no clock, no wasm; certificates and keys are read elsewhere.

mod auth;
mod beyond;
mod body;
mod expose;
mod fields;
mod file;
mod forbidden;
mod grant;
mod head;
mod hint;
mod judge;
mod login;
mod missing;
mod needs;
mod origin;
mod path;
mod preset;
mod problem;
mod properties;
mod reach;
mod registry;
mod settled;
mod slots;
mod template;
mod tls;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

pub use auth::Auth;
pub use beyond::{Want, beyond};
pub use body::LoginBody;
pub use expose::Expose;
pub use file::PolicyFile;
pub use forbidden::Endpoint;
pub use grant::Grant;
pub use head::{METHODS, is_of_connection, plain};
pub use judge::{Denial, DenialReason, Verdict};
pub use login::{Expires, Login, SendToken};
pub use missing::{ComparedNeed, Comparison};
pub use needs::{Need, Needs, Wanted};
pub use origin::{HostPattern, Origin, OriginSpec};
pub use path::PathPattern;
pub use preset::ReadFile;
pub use problem::Problem;
pub use properties::{NOT_PROPERTIES, Properties};
pub use registry::RegistryRights;
pub use settled::{Fetched, Settled, Spot};
pub use slots::{AGENT, Capture, Operations, Slot};
pub use template::{SecretRef, Template};
pub use tls::{ClientCertificate, Pem, Tls};

use crate::holes::Check;
use crate::net::addresses::{Addresses, is_loopback_net};
use crate::net::destination::{Host, Scheme};
use needs::{Declared, declared_slots};
use problem::Problems;

/// The policy of one call: properties filled in, needs applied.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Without those that are settled, which have neither secrets nor slots nor files.
    pub http: Vec<Arc<Grant>>,
    pub logins: BTreeMap<String, Login>,
    pub expose: Expose,
    pub registry: RegistryRights,
    /// Whether the module declares that it reads the stemcell's image.
    pub image: bool,
    settled: Option<Arc<Settled>>,
    trust_undeclared: bool,
    /// None: the module has no needs section.
    declared: Option<Vec<Declared>>,
    forbidden: Vec<Endpoint>,
    warnings: Vec<Problem>,
}

impl Policy {
    pub fn resolve(
        file: &PolicyFile,
        properties: &Properties,
        needs: Option<&Needs>,
        forbidden: &[Endpoint],
        allow_local: bool,
    ) -> Result<Policy, Vec<Problem>> {
        let problems = Problems::default();
        let declared: Option<Vec<Declared>> =
            needs.map(|needs| needs.http.iter().map(|need| Declared::resolve(need, properties)).collect());
        let resolve =
            |(name, spec): (&String, &login::LoginSpec)| Some((name.clone(), spec.resolve(properties, &problems)?));
        let logins: BTreeMap<String, Login> = file.logins.iter().filter_map(resolve).collect();
        let captures: Vec<&str> =
            file.http.iter().flat_map(|grant| &grant.captures).map(|one| one.name.as_str()).collect();
        let mut http = Vec::new();
        let warnings = Problems::default();
        for spec in &file.http {
            let Some(mut grant) = spec.resolve(properties, &logins, &captures, &problems) else { continue };
            check_forbidden(&grant.origin, forbidden, spec.at(), &problems);
            warn(&grant, spec, allow_local, &warnings);
            if let Some(needs) = declared.as_ref().filter(|_| Check::NeedsSlots.on()) {
                grant.slots = declared_slots(&grant.slots, &grant.origin, needs);
            }
            http.push(Arc::new(grant));
        }
        for (name, login) in &logins {
            let Some(spec) = file.logins.get(name) else { continue };
            check_forbidden(&login.origin, forbidden, spec.at(), &problems);
            if login.origin.scheme == Scheme::Http && spec.plain_http() {
                warnings.add(spec.at(), "logs in over `http://`, in the clear", "use `https://`");
            }
        }
        if file.trust_undeclared && needs.is_none() {
            let what = "lets a module without needs use every grant";
            warnings.add("trust_undeclared", what, "use a module that declares its needs");
        }
        let uses_registry = needs.map_or(file.trust_undeclared, |needs| needs.registry) || !Check::NeedsRegistry.on();
        let image = needs.map_or(file.trust_undeclared, |needs| needs.image);
        problems.or(Policy {
            http,
            logins,
            expose: file.expose.clone(),
            registry: file.registry.declared(uses_registry),
            image,
            settled: file.settled.clone(),
            trust_undeclared: file.trust_undeclared,
            declared,
            forbidden: forbidden.to_vec(),
            warnings: warnings.into_vec(),
        })
    }

    /// What `check` should point out, though it is allowed.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Ports that a request or a login can lead to.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        let declared = |port: &u16| match &self.declared {
            None => self.trust_undeclared,
            Some(needs) => needs.iter().any(|need| need.may_use(*port)),
        };
        let settled = self.settled.iter().flat_map(|settled| settled.ports()).copied();
        let granted = self.http.iter().map(|grant| grant.origin.port).chain(settled).filter(declared);
        granted.chain(self.logins.values().map(|login| login.origin.port))
    }

    /// More endpoints that no grant can open, which this call alone knows of.
    pub fn forbid(&mut self, endpoints: Vec<Endpoint>) {
        self.forbidden.extend(endpoints);
    }

    /// What an address is, if no grant can open it whatever the name was.
    pub fn forbids(&self, ip: IpAddr, port: u16) -> Option<&str> {
        let host = Host::Ip(ip.to_canonical());
        self.forbidden.iter().find(|endpoint| endpoint.is(&host, port)).map(|endpoint| endpoint.what.as_str())
    }

    /// Names of such endpoints on a port, each with what it is.
    pub fn forbidden_names(&self, port: u16) -> impl Iterator<Item = (&str, &str)> {
        self.forbidden.iter().filter_map(move |endpoint| Some((endpoint.name_on(port)?, endpoint.what.as_str())))
    }
}

fn check_forbidden(origin: &Origin, forbidden: &[Endpoint], at: &str, problems: &Problems) {
    let is_here = |endpoint: &&Endpoint| Check::EndpointInPolicy.on() && endpoint.is_origin(origin);
    if let Some(endpoint) = forbidden.iter().find(is_here) {
        let what = format!("is {}, which no guest may reach", endpoint.what);
        problems.add(format!("{at}.to"), what, "remove the grant; the host speaks to it on its own");
    }
}

fn warn(grant: &Grant, spec: &grant::GrantSpec, allow_local: bool, warnings: &Problems) {
    if grant.origin.scheme == Scheme::Http && spec.secret_over_plain_http() {
        warnings.add(
            format!("{}.plain_http", spec.at()),
            "sends secrets over `http://`, in the clear",
            "use `https://`",
        );
    }
    if let Addresses::Cidrs(nets) = &grant.addresses
        && !allow_local
        && nets.iter().any(is_loopback_net)
    {
        let what = "lists this machine's own addresses, which stay closed";
        warnings.add(
            format!("{}.addresses", spec.at()),
            what,
            "set \"allow_local\": true in the config, or remove them",
        );
    }
}
