//! Origins: the `to` of a grant, login or need, as written and as resolved for a call.
//!
//! An origin is `scheme://host[:port]`. It must be written in canonical form, so that a person
//! reviews exactly the text that is compared. A host may be `*.` and a name, which matches
//! exactly one more label. `${property}` may stand for one label of the host, for the host, or for
//! the whole origin; see `spec`.

mod spec;
#[cfg(test)]
mod tests;

pub use spec::OriginSpec;
pub(super) use spec::ResolvedOrigin;

use std::fmt;

use super::regions::UnlistedRegion;
use super::template::TemplateError;
use crate::addresses::never;
use crate::destination::{Destination, Host, InvalidUrl, Scheme};
use wasm_cpi_checks::Check;

/// A scheme, a host or pattern of hosts, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The scheme, which must match exactly.
    pub scheme: Scheme,
    /// The host or hosts.
    pub host: HostPattern,
    /// The port, which must match exactly; the scheme's default if none is written.
    pub port: u16,
}

/// The hosts that an origin matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Exactly this name or address.
    Exact(Host),
    /// `*.name`: every name with exactly one label before `name`. Holds `name` alone.
    OneLabelBelow(String),
}

const MAX_BYTES: u64 = 2048;

/// The reason why a text, or the value of a property, is not an origin. The messages follow the
/// key of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The text does not begin with `https://` or `http://`.
    #[error("has no scheme")]
    NoScheme,
    /// The text goes on after the port.
    #[error("goes on after the port")]
    NotAlone,
    /// The host is `*` alone.
    #[error("names every host")]
    EveryHost,
    /// The text is not the beginning of a URL.
    #[error("is not an origin: {0}")]
    Url(#[source] InvalidUrl),
    /// The value of a property is not a URL.
    #[error("{0}")]
    PropertyUrl(#[source] InvalidUrl),
    /// The value of a property has another scheme, which is not quoted: it may be a secret.
    #[error("its scheme is neither http nor https")]
    PropertyScheme,
    /// The value of a property is to be a host or a URL and is not.
    #[error("is neither a host, perhaps with a port, nor a URL")]
    PropertyHost,
    /// The value of a property is to be one label of the host and is not.
    #[error("is not one label of a DNS name")]
    PropertyLabel,
    /// A cpi-config sets the property that is one label of the host to a value that is not listed.
    #[error(transparent)]
    Region(#[from] UnlistedRegion),
    /// The origin has another canonical form.
    #[error("is not in canonical form")]
    NotCanonical {
        /// The form in which the origin must be written.
        canonical: String,
    },
    /// A `*` is part of an IP address.
    #[error("has a `*` in an address")]
    WildcardAddress,
    /// A `*` stands for a label below a top-level domain.
    #[error("has a `*` with fewer than two labels behind it")]
    WildcardTooWide,
    /// The host name has an empty label or a trailing dot.
    #[error("has a host name with an empty label or a trailing dot")]
    EmptyLabel,
    /// The host is an address that no policy can grant. Holds what it is.
    #[error("names {0}, which can never be granted")]
    NeverGranted(&'static str),
    /// A `${…}` is malformed.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A `${…}` is neither the whole origin, nor the whole host, nor one whole label.
    #[error(
        "has a `${{…}}` that is neither the whole origin, nor its host with the port, nor one whole label of its host"
    )]
    MisplacedProperty,
}

impl OriginError {
    /// Returns what the author of the text should do.
    pub fn remedy(&self) -> String {
        match self {
            OriginError::NotAlone => "write the origin alone; paths go into `paths`",
            OriginError::EveryHost => "name the host, or one label of it like `https://*.example.com`",
            OriginError::Region(_) => UnlistedRegion::REMEDY,
            OriginError::PropertyLabel => "use letters, digits and `-`",
            OriginError::NotCanonical { canonical } => return format!("write it as `{canonical}`"),
            OriginError::WildcardTooWide => "name more of it, like `https://*.example.com`",
            OriginError::NeverGranted(_) => "remove the grant",
            OriginError::Template(_) => "write `${property}` or `https://${property}.example.com`",
            OriginError::MisplacedProperty => {
                "write `${property}` or `https://${property}` alone, or like `https://api.${property}.example.com`"
            }
            OriginError::NoScheme
            | OriginError::Url(_)
            | OriginError::PropertyUrl(_)
            | OriginError::PropertyScheme
            | OriginError::PropertyHost
            | OriginError::WildcardAddress
            | OriginError::EmptyLabel => "write it like `https://api.example.com:8774`",
        }
        .to_owned()
    }

    /// Returns the check that refuses the origin, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        match self {
            OriginError::NotAlone | OriginError::NotCanonical { .. } => Some(Check::OriginForm),
            OriginError::WildcardTooWide => Some(Check::OriginWildcard),
            OriginError::PropertyHost | OriginError::PropertyLabel | OriginError::MisplacedProperty => {
                Some(Check::OriginTemplate)
            }
            OriginError::Region(unlisted) => unlisted.check,
            OriginError::NeverGranted(_) => Some(Check::AddressNever),
            OriginError::PropertyScheme => Some(Check::UrlScheme),
            OriginError::Url(invalid) | OriginError::PropertyUrl(invalid) => invalid.check(),
            OriginError::NoScheme
            | OriginError::EveryHost
            | OriginError::WildcardAddress
            | OriginError::EmptyLabel
            | OriginError::Template(_) => None,
        }
    }
}

impl Origin {
    /// Parses an origin without properties. Rejects origins that are not in canonical form, that
    /// name every host, or that name an address which can never be granted.
    pub fn parse(text: &str) -> Result<Origin, OriginError> {
        let (Some((_, host)), false) = (text.split_once("://"), text.starts_with('*')) else {
            return Err(OriginError::NoScheme);
        };
        if Check::OriginForm.refuses(host.contains(['/', '?', '#'])) {
            return Err(OriginError::NotAlone);
        }
        if host == "*" || host.starts_with("*:") {
            return Err(OriginError::EveryHost);
        }
        let below = text.split_once("://*.");
        let probe = below.map_or_else(|| text.to_owned(), |(scheme, name)| format!("{scheme}://any.{name}"));
        let destination = Destination::parse(&probe, MAX_BYTES).map_err(OriginError::Url)?;
        let mut origin = Origin::of(&destination)?;
        let written = probe.rsplit_once("://").map_or("", |(_, host)| host);
        let canonical = origin.host.to_string();
        let port = written.strip_prefix(canonical.as_str());
        let is_canonical = port.is_some_and(|port| port.is_empty() || port.starts_with(':'))
            && text.starts_with(origin.scheme.as_str());
        if Check::OriginForm.refuses(!is_canonical) {
            let canonical = destination.origin();
            let canonical = if below.is_some() { canonical.replacen("://any.", "://*.", 1) } else { canonical };
            return Err(OriginError::NotCanonical { canonical });
        }
        if below.is_some() {
            let HostPattern::Exact(Host::Name(probe)) = &origin.host else {
                return Err(OriginError::WildcardAddress);
            };
            let suffix = probe.strip_prefix("any.").unwrap_or_default();
            if Check::OriginWildcard.refuses(!suffix.contains('.')) {
                return Err(OriginError::WildcardTooWide);
            }
            origin.host = HostPattern::OneLabelBelow(suffix.to_owned());
        }
        Ok(origin)
    }

    /// Returns the origin of a URL. Rejects hosts that can never be granted.
    fn of(destination: &Destination) -> Result<Origin, OriginError> {
        match destination.host() {
            Host::Name(name) if name.split('.').any(str::is_empty) => {
                return Err(OriginError::EmptyLabel);
            }
            Host::Ip(ip) => {
                if let Some(what) = never(*ip) {
                    return Err(OriginError::NeverGranted(what));
                }
            }
            Host::Name(_) => {}
        }
        let host = HostPattern::Exact(destination.host().clone());
        Ok(Origin { scheme: destination.scheme(), host, port: destination.port() })
    }

    /// Returns true if the origin matches more than one host. Secrets never go to such an origin.
    pub fn is_wildcard(&self) -> bool {
        matches!(self.host, HostPattern::OneLabelBelow(_))
    }

    /// Returns true if a request to this destination goes to the origin.
    pub fn matches(&self, destination: &Destination) -> bool {
        self.scheme == destination.scheme() && self.port == destination.port() && self.host.matches(destination.host())
    }

    /// Returns true if this origin matches every destination that `other` matches.
    pub fn covers(&self, other: &Origin) -> bool {
        let hosts = match &other.host {
            HostPattern::Exact(host) => self.host.matches(host),
            below => self.host == *below,
        };
        hosts && self.scheme == other.scheme && self.port == other.port
    }
}

impl HostPattern {
    /// Returns true if the pattern is for this host. A wildcard never matches an address.
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (HostPattern::Exact(exact), host) => exact == host,
            (HostPattern::OneLabelBelow(suffix), Host::Name(name)) => name
                .strip_suffix(suffix.as_str())
                .and_then(|label| label.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty() && Check::WildcardLabel.accepts(!label.contains('.'))),
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
