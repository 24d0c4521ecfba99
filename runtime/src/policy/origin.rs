//! Origins: what a grant or a need names in `to`, and what it becomes for a call.
//!
//! An origin is `scheme://host[:port]` in canonical form, so that what a person
//! reviews is what is compared. A host may be `*.` and a name: exactly one label
//! more. `${property}` may stand for one label of it, or for the whole, and then
//! hold a URL: its path is what all paths beside it are below.

use std::fmt;

use super::path::Base;
use super::problem::Problems;
use super::properties::{Properties, leaf_text};
use super::template::{Template, scalar};
use crate::holes::Check;
use crate::net::addresses::never;
use crate::net::destination::{Destination, Host, Invalid, Scheme};
use crate::secret::Layer;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub scheme: Scheme,
    pub host: HostPattern,
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    Exact(Host),
    /// `*.name`: the name, without the `*.`.
    OneLabelBelow(String),
}

const EXAMPLE: &str = "write it like `https://api.example.com:8774`";
const MAX_BYTES: u64 = 2048;

type Wrong = (String, String);

impl Origin {
    /// What is wrong with it, and what to do, if it is not one.
    pub fn parse(text: &str) -> Result<Origin, Wrong> {
        let wrong = |what: &str, remedy: &str| Err((what.to_owned(), remedy.to_owned()));
        let (Some((_, host)), false) = (text.split_once("://"), text.starts_with('*')) else {
            return wrong("has no scheme", EXAMPLE);
        };
        if Check::OriginForm.on() && host.contains(['/', '?', '#']) {
            return wrong("goes on after the port", "write the origin alone; paths go into `paths`");
        }
        if host == "*" || host.starts_with("*:") {
            return wrong("names every host", "name the host, or one label of it like `https://*.example.com`");
        }
        let below = text.split_once("://*.");
        let probe = below.map_or_else(|| text.to_owned(), |(scheme, name)| format!("{scheme}://any.{name}"));
        let destination =
            Destination::parse(&probe, MAX_BYTES).map_err(|e| (format!("is no origin: {e}"), EXAMPLE.into()))?;
        let mut origin = Origin::of(&destination)?;
        let written = probe.rsplit_once("://").map_or("", |(_, host)| host);
        let canonical = origin.host.to_string();
        let port = written.strip_prefix(canonical.as_str());
        let is_canonical = port.is_some_and(|port| port.is_empty() || port.starts_with(':'))
            && text.starts_with(origin.scheme.as_str());
        if Check::OriginForm.on() && !is_canonical {
            let canonical = destination.origin();
            let canonical = if below.is_some() { canonical.replacen("://any.", "://*.", 1) } else { canonical };
            return Err(("is not in canonical form".into(), format!("write it as `{canonical}`")));
        }
        if below.is_some() {
            let HostPattern::Exact(Host::Name(probe)) = &origin.host else {
                return wrong("has a `*` in an address", EXAMPLE);
            };
            let suffix = probe.strip_prefix("any.").unwrap_or_default();
            if Check::OriginWildcard.on() && !suffix.contains('.') {
                return wrong(
                    "has a `*` with fewer than two labels behind it",
                    "name more of it, like `https://*.example.com`",
                );
            }
            origin.host = HostPattern::OneLabelBelow(suffix.to_owned());
        }
        Ok(origin)
    }

    /// The origin of a URL, if it can be granted at all.
    fn of(destination: &Destination) -> Result<Origin, Wrong> {
        match destination.host() {
            Host::Name(name) if name.split('.').any(str::is_empty) => {
                return Err(("has a host name with an empty label or a trailing dot".into(), EXAMPLE.into()));
            }
            Host::Ip(ip) => {
                if let Some(what) = never(*ip) {
                    return Err((format!("names {what}, which can never be granted"), "remove the grant".into()));
                }
            }
            Host::Name(_) => {}
        }
        let host = HostPattern::Exact(destination.host().clone());
        Ok(Origin { scheme: destination.scheme(), host, port: destination.port() })
    }

    pub fn is_wildcard(&self) -> bool {
        matches!(self.host, HostPattern::OneLabelBelow(_))
    }

    pub fn matches(&self, destination: &Destination) -> bool {
        self.scheme == destination.scheme() && self.port == destination.port() && self.host.matches(destination.host())
    }

    /// Whether it matches all that `other` matches.
    pub fn covers(&self, other: &Origin) -> bool {
        let hosts = match &other.host {
            HostPattern::Exact(host) => self.host.matches(host),
            below => self.host == *below,
        };
        hosts && self.scheme == other.scheme && self.port == other.port
    }
}

impl HostPattern {
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (HostPattern::Exact(exact), host) => exact == host,
            (HostPattern::OneLabelBelow(suffix), Host::Name(name)) => name
                .strip_suffix(suffix.as_str())
                .and_then(|label| label.strip_suffix('.'))
                .is_some_and(|label| !(label.is_empty() || Check::WildcardLabel.on() && label.contains('.'))),
            (HostPattern::OneLabelBelow(_), Host::Ip(_)) => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(host) => write!(f, "{host}"),
            HostPattern::OneLabelBelow(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// An origin as it is written in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginSpec {
    Fixed(Origin),
    /// `${property}`, whose value is an origin or a URL below it.
    Property(String),
    /// `https://${property}.example.com`.
    Label {
        before: String,
        property: String,
        after: String,
    },
}

/// With this call's properties.
pub(super) struct Resolved {
    pub(super) origin: Origin,
    pub(super) base: Base,
    /// Which had the last word on it.
    pub(super) layer: Layer,
}

impl OriginSpec {
    pub fn parse(text: &str) -> Result<OriginSpec, Wrong> {
        let template = Template::parse(text)
            .map_err(|what| (what.to_owned(), "write `${property}` or `https://${property}.example.com`".to_owned()))?;
        if !template.has_property() {
            return Origin::parse(text).map(OriginSpec::Fixed);
        }
        if let Some(property) = template.whole_property() {
            return Ok(OriginSpec::Property(property.to_owned()));
        }
        let wrong = || {
            let what = "has a `${…}` that is neither the whole origin nor one whole label of its host";
            (what.to_owned(), "write `${property}` alone, or like `https://api.${property}.example.com`".to_owned())
        };
        let (before, rest) = text.split_once("${").ok_or_else(wrong)?;
        let (property, after) = rest.split_once('}').ok_or_else(wrong)?;
        let name = after.strip_prefix('.').ok_or_else(wrong)?;
        let whole_label = before.ends_with('.') || before.ends_with("://");
        if Check::OriginTemplate.on()
            && (!whole_label || before.contains('*') || !name.contains('.') || after.contains("${"))
        {
            return Err(wrong());
        }
        Origin::parse(&format!("{before}any{after}"))?;
        Ok(OriginSpec::Label { before: before.to_owned(), property: property.to_owned(), after: after.to_owned() })
    }

    /// Whether it stands for all that `other` stands for, whatever properties hold.
    pub(super) fn covers(&self, other: &OriginSpec) -> bool {
        match (self, other) {
            (OriginSpec::Fixed(own), OriginSpec::Fixed(other)) => own.covers(other),
            // What covers two different labels at one place has its `*` there.
            (OriginSpec::Fixed(own), OriginSpec::Label { before, after, .. }) => ["a", "b"]
                .iter()
                .all(|label| Origin::parse(&format!("{before}{label}{after}")).is_ok_and(|filled| own.covers(&filled))),
            _ => self == other,
        }
    }

    pub(super) fn resolve(&self, properties: &Properties, at: &str, problems: &Problems) -> Option<Resolved> {
        let (text, property) = match self {
            OriginSpec::Fixed(origin) => {
                return Some(Resolved { origin: origin.clone(), base: Base::default(), layer: Layer::Job });
            }
            OriginSpec::Property(property) | OriginSpec::Label { property, .. } => {
                (scalar(properties, property, at, problems)?, property)
            }
        };
        let (value, layer) = (leaf_text(text.0), text.1);
        let origin = match self {
            OriginSpec::Label { before, after, .. } => {
                let label = value.to_lowercase();
                let one = !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
                let whole = Origin::parse(&format!("{before}{label}{after}")).map(|origin| (origin, Base::default()));
                if one || !Check::OriginTemplate.on() {
                    whole
                } else {
                    Err(("is not one label of a DNS name".into(), "use letters, digits and `-`".into()))
                }
            }
            _ => Destination::parse(&value, MAX_BYTES)
                .map_err(|invalid| (without_value(&invalid), EXAMPLE.to_owned()))
                .and_then(|destination| Ok((Origin::of(&destination)?, Base::of(&destination)))),
        };
        match origin {
            Ok((origin, base)) => Some(Resolved { origin, base, layer }),
            Err((what, remedy)) => {
                problems.add(at, format!("the value of the property `{property}`: {what}"), remedy);
                None
            }
        }
    }
}

/// What is wrong with a property's value, which may be a secret.
fn without_value(invalid: &Invalid) -> String {
    match invalid {
        Invalid::Scheme(_) => "its scheme is neither http nor https".to_owned(),
        other => other.to_string(),
    }
}

impl fmt::Display for OriginSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OriginSpec::Fixed(origin) => write!(f, "{origin}"),
            OriginSpec::Property(property) => write!(f, "${{{property}}}"),
            OriginSpec::Label { before, property, after } => write!(f, "{before}${{{property}}}{after}"),
        }
    }
}

#[cfg(test)]
mod tests;
