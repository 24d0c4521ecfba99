//! Combines the operator's policy with the properties of a call and the needs of its guest.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::PolicyFile;
use super::forbidden::Endpoint;
use super::grant::{Grant, GrantSpec};
use super::login::{Login, LoginSpec};
use super::needs::{Needs, ResolvedNeed, Restriction, declared_slots};
use super::origin::{HostPattern, Origin};
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::{Policy, credentials, read_back};
use crate::addresses::{self, Addresses, is_loopback_net};
use crate::destination::{Host, Scheme};
use wasm_cpi_checks::Check;

impl Policy {
    /// Combines the operator's policy, the properties of this call and the guest's needs.
    ///
    /// `needs` is `None` for a guest without a needs section, which may use nothing unless the
    /// policy sets `trust_undeclared`. `forbidden` lists the endpoints that no grant can open,
    /// and `allow_local` is the setting of the config, which only affects warnings here.
    /// Returns all problems at once: properties that are not set or are of the wrong kind,
    /// secrets that would go to an origin of another layer, regions of a cpi-config that the policy
    /// does not list, and grants for forbidden endpoints.
    pub fn resolve(
        file: &PolicyFile,
        properties: &Properties,
        needs: Option<&Needs>,
        forbidden: &[Endpoint],
        allow_local: bool,
    ) -> Result<Policy, Vec<PolicyProblem>> {
        let problems = Problems::default();
        let declared: Option<Vec<ResolvedNeed>> = needs.map(|needs| {
            needs.http.iter().map(|need| ResolvedNeed::resolve(need, properties, &file.regions)).collect()
        });
        let resolve = |(name, spec): (&String, &LoginSpec)| {
            Some((name.clone(), spec.resolve(properties, &file.regions, &problems)?))
        };
        let logins: BTreeMap<String, Login> = file.logins.iter().filter_map(resolve).collect();
        let credentials = credentials::resolve_all(&file.credentials, properties, &file.regions, &problems);
        let captures: Vec<&str> =
            file.http.iter().flat_map(|grant| &grant.captures).map(|one| one.name.as_str()).collect();
        let (mut http, mut written) = (Vec::new(), Vec::new());
        let (warnings, unreachable) = (Problems::default(), Problems::default());
        for spec in &file.http {
            let resolved = spec.resolve(properties, &file.regions, &logins, &credentials, &captures, &problems);
            let Some(mut grant) = resolved else { continue };
            check_forbidden(&grant.origin, forbidden, spec.at(), &problems);
            warn(&grant, spec, allow_local, &warnings);
            check_reachable(&grant.origin, &grant.addresses, allow_local, spec.at(), &unreachable);
            if let Some(needs) = &declared {
                Check::NeedsSlots.perform(|| grant.slots = declared_slots(&grant, needs));
            }
            http.push(Arc::new(grant));
            written.push(spec.at().to_owned());
        }
        let written: Vec<_> = written.into_iter().zip(http.iter().map(AsRef::as_ref)).collect();
        read_back::warn_about_read_back(&written, &warnings);
        for (name, login) in &logins {
            let Some(spec) = file.logins.get(name) else { continue };
            check_forbidden(&login.origin, forbidden, spec.at(), &problems);
            check_reachable(&login.origin, &login.addresses, allow_local, spec.at(), &unreachable);
            if login.origin.scheme == Scheme::Http && spec.plain_http() {
                warnings.add(spec.at(), "logs in over `http://`, in the clear", "use `https://`");
            }
        }
        for (name, one) in &credentials {
            let (Some(role), Some(spec)) = (one.assumed_role(), file.credentials.get(name)) else { continue };
            let at = format!("{}.assume_role", spec.at());
            check_forbidden(&role.origin, forbidden, &at, &problems);
            check_reachable(&role.origin, &role.addresses, allow_local, &at, &unreachable);
            if role.origin.scheme == Scheme::Http && spec.plain_http() {
                warnings.add(at, "asks for credentials over `http://`, in the clear", "use `https://`");
            }
        }
        if file.trust_undeclared && needs.is_none() {
            let what = "lets a guest without needs use every grant";
            warnings.add("trust_undeclared", what, "use a guest that declares its needs");
        }
        let uses_registry = needs.map_or(file.trust_undeclared, |needs| needs.registry);
        let image = needs.map_or(file.trust_undeclared, |needs| needs.image);
        problems.into_result(Policy {
            http,
            credentials,
            logins,
            expose: file.expose.clone(),
            registry: file.registry.declared(uses_registry),
            image,
            trust_undeclared: file.trust_undeclared,
            declared,
            declared_logins: needs.map_or(Restriction::Any, |needs| needs.logins.clone()),
            forbidden: forbidden.to_vec(),
            warnings: warnings.into_vec(),
            unreachable: unreachable.into_vec(),
        })
    }
}

/// Reports a grant or login for an endpoint that no grant can open.
fn check_forbidden(origin: &Origin, forbidden: &[Endpoint], at: &str, problems: &Problems) {
    let found = forbidden.iter().find(|endpoint| endpoint.is_origin(origin));
    problems.reject(Check::EndpointInPolicy, found, |endpoint| {
        let what = format!("is {}, which no guest may reach", endpoint.what);
        PolicyProblem::new(format!("{at}.to"), what, "remove the grant; the host speaks to it on its own")
    });
}

/// Reports an origin that is an address outside of its own `addresses`.
fn check_reachable(origin: &Origin, addresses: &Addresses, allow_local: bool, at: &str, unreachable: &Problems) {
    let HostPattern::Exact(Host::Ip(ip)) = &origin.host else { return };
    if let Err(denial) = addresses::judge(*ip, addresses, allow_local, &[]) {
        let remedy = denial.remedy().unwrap_or_else(|| "use another address".to_owned());
        let what = format!("cannot be reached: {}", denial.cause());
        unreachable.push(PolicyProblem { check: Some(denial.check()), ..PolicyProblem::new(at, what, remedy) });
    }
}

/// Adds the warnings about one grant.
fn warn(grant: &Grant, spec: &GrantSpec, allow_local: bool, warnings: &Problems) {
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
