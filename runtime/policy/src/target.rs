//! The target of requests: `to`, `addresses`, `tls` and `plain_http`, which grants and logins
//! have in common.
//!
//! This module checks that secrets go only to exact hosts, and that they travel unencrypted
//! only if the operator sets `plain_http`.

use ipnet::IpNet;
use serde_json::Value;

use super::object_reader::{ObjectReader, kind};
use super::origin::{Origin, OriginError, OriginSpec, ResolvedOrigin};
use super::path::Base;
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::regions::Regions;
use super::tls::{Tls, TlsSpec};
use crate::addresses::{Addresses, never_net};
use crate::destination::Scheme;
use crate::secret::Layer;
use wasm_cpi_checks::{Check, RefusedBy};

/// A target as it is written in the file.
#[derive(Clone, Debug)]
pub(super) struct TargetSpec {
    pub(super) to: OriginSpec,
    pub(super) addresses: Addresses,
    pub(super) tls: TlsSpec,
    pub(super) plain_http: bool,
}

/// A target with the properties of one call filled in.
pub(super) struct ResolvedTarget {
    pub(super) origin: Origin,
    /// The path of the URL in `to`, which is put before all paths.
    pub(super) base: Base,
    /// The layer that chose the origin: `Context` if a cpi-config had any part in it.
    pub(super) layer: Layer,
    pub(super) tls: Tls,
}

impl TargetSpec {
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> Option<TargetSpec> {
        let to = reader.required_text("to", "https://api.example.com").and_then(|text| {
            let refused = |error: OriginError| reader.refused(error.check(), "to", error.to_string(), error.remedy());
            OriginSpec::parse(text).map_err(refused).ok()
        });
        let addresses = addresses(reader);
        let tls = TlsSpec::read(reader);
        let plain_http = reader.flag("plain_http");
        Some(TargetSpec { to: to?, addresses, tls, plain_http })
    }

    /// Reports the problems that can be found before properties are known.
    pub(super) fn check(&self, secrets: Option<&str>, at: &str, problems: &Problems) {
        if let OriginSpec::Fixed(origin) = &self.to {
            self.check_origin(origin, secrets, at, problems);
        }
    }

    /// Fills in the properties. `secrets` is the key because of which secrets are sent or
    /// received, if there is one.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        regions: &Regions,
        secrets: Option<&str>,
        at: &str,
        problems: &Problems,
    ) -> Option<ResolvedTarget> {
        let to = self.to.resolve(properties, regions, &format!("{at}.to"), problems)?;
        let ResolvedOrigin { origin, base, layer } = to;
        if let Some(property) = self.to.property() {
            self.check_scheme(&origin, property, at, problems);
            self.check_origin(&origin, secrets, at, problems);
        }
        let tls = self.tls.resolve(properties, layer, &format!("{at}.tls"), problems)?;
        Some(ResolvedTarget { origin, base, layer, tls })
    }

    /// Reports a property that holds an `http://` URL where the policy writes `https://`.
    fn check_scheme(&self, origin: &Origin, property: &str, at: &str, problems: &Problems) {
        let downgraded =
            matches!(self.to, OriginSpec::Host { scheme: Scheme::Https, .. }) && origin.scheme == Scheme::Http;
        problems.ensure(Check::PlainHttp, !downgraded || self.plain_http, || {
            let what = format!("is `http://` by the property `{property}`, and the policy writes `https://`");
            let remedy = "set the property to a host or an `https://` URL, or accept it with \"plain_http\": true";
            PolicyProblem::new(format!("{at}.to"), what, remedy)
        });
    }

    fn check_origin(&self, origin: &Origin, secrets: Option<&str>, at: &str, problems: &Problems) {
        let plain = origin.scheme == Scheme::Http;
        if plain && !self.tls.is_empty() {
            problems.add(
                format!("{at}.tls"),
                "has no meaning for `http://`",
                "write `https://` in `to`, or remove `tls`",
            );
        }
        let Some(key) = secrets else { return };
        problems.ensure(Check::PlainHttp, !plain || self.plain_http, || {
            let what = format!("is `http://`, and `{key}` would send secrets over it in the clear");
            PolicyProblem::new(format!("{at}.to"), what, "write `https://`, or accept it with \"plain_http\": true")
        });
        problems.ensure(Check::SecretWildcard, !origin.is_wildcard(), || {
            let what = format!("has a `*`, and `{key}` binds secrets, which go only to exact hosts");
            let remedy = format!("name the host, or move `{key}` into a grant for one host");
            PolicyProblem::new(format!("{at}.to"), what, remedy)
        });
    }
}

fn addresses(reader: &mut ObjectReader<'_>) -> Addresses {
    const REMEDY: &str = "write \"public\", or a list of CIDRs like [\"10.0.0.0/8\"]";
    match reader.value("addresses") {
        None => Addresses::Public,
        Some(Value::String(word)) if word == "public" => Addresses::Public,
        Some(Value::Array(_)) => {
            let cidrs = reader.required_texts("addresses", "10.0.0.0/8");
            let nets = cidrs.iter().filter_map(|(at, text)| cidr(text, at, reader.problems())).collect();
            Addresses::Cidrs(nets)
        }
        Some(Value::String(_)) => {
            reader.problem("addresses", "is an unknown keyword", REMEDY);
            Addresses::Public
        }
        Some(other) => {
            reader.problem("addresses", format!("is {}", kind(other)), REMEDY);
            Addresses::Public
        }
    }
}

fn cidr(text: &str, at: &str, problems: &Problems) -> Option<IpNet> {
    let Ok(net) = text.parse::<IpNet>() else {
        problems.add(at, "is not a CIDR", "write it like `10.0.0.0/8`, or `10.0.0.5/32` for one address");
        return None;
    };
    if let IpNet::V6(v6) = net
        && v6.addr().to_ipv4_mapped().is_some()
    {
        problems.add(at, "is an IPv4 network written as IPv6", "write it as IPv4, like `10.0.0.0/8`");
        return None;
    }
    if net.trunc() != net {
        problems.add(at, "has bits set behind its prefix", format!("write it as `{}`", net.trunc()));
        return None;
    }
    if let Some(what) = never_net(&net) {
        let problem =
            PolicyProblem::new(at, format!("holds nothing but {what}, which can never be granted"), "remove it");
        problems.push(problem.refused_by(Check::AddressNever));
        return None;
    }
    Some(net)
}
