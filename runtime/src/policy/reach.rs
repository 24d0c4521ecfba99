//! Where something goes and how it gets there: `to`, `addresses`, `tls` and
//! `plain_http`, which grants and logins have in common.
//!
//! Here stands the rule that secrets go to exact hosts, and in the clear only
//! where the operator said so in as many words.

use ipnet::IpNet;
use serde_json::Value;

use super::fields::{Fields, kind};
use super::origin::{Origin, OriginSpec, Resolved};
use super::path::Base;
use super::problem::Problems;
use super::properties::Properties;
use super::tls::{Tls, TlsSpec};
use crate::holes::Check;
use crate::net::addresses::{Addresses, never_net};
use crate::net::destination::Scheme;
use crate::secret::Layer;

#[derive(Clone, Debug)]
pub(super) struct ReachSpec {
    pub(super) to: OriginSpec,
    pub(super) addresses: Addresses,
    pub(super) tls: TlsSpec,
    pub(super) plain_http: bool,
}

pub(super) struct Reach {
    pub(super) origin: Origin,
    /// What its paths are below.
    pub(super) base: Base,
    /// Of the origin: `Context` if the context had any part in it.
    pub(super) layer: Layer,
    pub(super) tls: Tls,
}

impl ReachSpec {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<ReachSpec> {
        let to = fields
            .required_text("to", "https://api.example.com")
            .and_then(|text| OriginSpec::parse(text).map_err(|(what, remedy)| fields.problem("to", what, remedy)).ok());
        let addresses = addresses(fields);
        let tls = TlsSpec::read(fields);
        let plain_http = fields.flag("plain_http");
        Some(ReachSpec { to: to?, addresses, tls, plain_http })
    }

    /// What can be said before properties are known.
    pub(super) fn check(&self, secrets: Option<&str>, at: &str, problems: &Problems) {
        if let OriginSpec::Fixed(origin) = &self.to {
            self.check_origin(origin, secrets, at, problems);
        }
    }

    /// `secrets` names the key that makes secrets travel, if one does.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        secrets: Option<&str>,
        at: &str,
        problems: &Problems,
    ) -> Option<Reach> {
        let Resolved { origin, base, layer } = self.to.resolve(properties, &format!("{at}.to"), problems)?;
        if !matches!(self.to, OriginSpec::Fixed(_)) {
            self.check_origin(&origin, secrets, at, problems);
        }
        let tls = self.tls.resolve(properties, layer, &format!("{at}.tls"), problems)?;
        Some(Reach { origin, base, layer, tls })
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
        if let (true, false, Some(key)) = (plain && Check::PlainHttp.on(), self.plain_http, secrets) {
            problems.add(
                format!("{at}.to"),
                format!("is `http://`, and `{key}` would send secrets over it in the clear"),
                "write `https://`, or accept it with \"plain_http\": true",
            );
        }
        if let (true, Some(key)) = (origin.is_wildcard() && Check::SecretWildcard.on(), secrets) {
            problems.add(
                format!("{at}.to"),
                format!("has a `*`, and `{key}` binds secrets, which go only to exact hosts"),
                format!("name the host, or move `{key}` into a grant for one host"),
            );
        }
    }
}

fn addresses(fields: &mut Fields<'_>) -> Addresses {
    const REMEDY: &str = "write \"public\", or a list of CIDRs like [\"10.0.0.0/8\"]";
    match fields.value("addresses") {
        None => Addresses::Public,
        Some(Value::String(word)) if word == "public" => Addresses::Public,
        Some(Value::Array(_)) => {
            let cidrs = fields.required_texts("addresses", "10.0.0.0/8");
            let nets = cidrs.iter().filter_map(|(at, text)| cidr(text, at, fields.problems())).collect();
            Addresses::Cidrs(nets)
        }
        Some(Value::String(_)) => {
            fields.problem("addresses", "is an unknown word", REMEDY);
            Addresses::Public
        }
        Some(other) => {
            fields.problem("addresses", format!("is {}", kind(other)), REMEDY);
            Addresses::Public
        }
    }
}

fn cidr(text: &str, at: &str, problems: &Problems) -> Option<IpNet> {
    let Ok(net) = text.parse::<IpNet>() else {
        problems.add(at, "is no CIDR", "write it like `10.0.0.0/8`, or `10.0.0.5/32` for one address");
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
        problems.add(at, format!("holds nothing but {what}, which can never be granted"), "remove it");
        return None;
    }
    Some(net)
}
