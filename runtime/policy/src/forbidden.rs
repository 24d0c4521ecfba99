//! Endpoints that no grant can open: the registry, the message bus, the blobstore and the proxy.
//! Only the runtime and the Agents talk to them, with secrets that a guest must not obtain.

use std::net::IpAddr;

use url::Url;

use super::origin::{HostPattern, Origin};
use crate::destination::Host;

/// A server that no grant can open to a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What the server is, as messages name it, such as `the registry`.
    pub what: String,
    /// The host in canonical form, so that it can be compared with a destination.
    pub host: Host,
    /// The port of the server; `None` stands for all ports of the host.
    pub port: Option<u16>,
}

impl Endpoint {
    /// Returns the endpoint of a URL from the operator's config, whatever its scheme. Returns
    /// `None` for a URL without a host, such as that of a file.
    pub fn from_url(what: &str, url: &str) -> Option<Endpoint> {
        let url = Url::parse(url).ok()?;
        // Only URLs of http have their hosts read in all forms: read this one so, too.
        let host = match url::Host::parse(url.host_str()?) {
            Ok(url::Host::Ipv4(ip)) => Host::Ip(ip.into()),
            Ok(url::Host::Ipv6(ip)) => Host::Ip(IpAddr::V6(ip).to_canonical()),
            Ok(url::Host::Domain(name)) => Host::Name(name.trim_end_matches('.').to_owned()),
            Err(_) => Host::Name(url.host_str()?.trim_end_matches('.').to_lowercase()),
        };
        let port = url.port_or_known_default();
        (host != Host::Name(String::new())).then(|| Endpoint { what: what.to_owned(), host, port })
    }

    /// Returns true if this may be the server at that host and port.
    pub(super) fn is(&self, host: &Host, port: u16) -> bool {
        // A server of this machine may listen on all of its addresses.
        let same = self.host == *host || (is_loopback(&self.host) && is_loopback(host));
        same && self.is_on(port)
    }

    fn is_on(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }

    /// Returns the endpoint's name if it has one and may listen on the port. Whether another
    /// name or address leads to the same server is known only once both are resolved.
    pub(super) fn name_on(&self, port: u16) -> Option<&str> {
        match &self.host {
            Host::Name(name) if self.is_on(port) => Some(name),
            _ => None,
        }
    }

    /// Returns true if the origin of a grant names exactly this server.
    pub(super) fn is_origin(&self, origin: &Origin) -> bool {
        matches!(&origin.host, HostPattern::Exact(host) if self.is(host, origin.port))
    }
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Ip(ip) => ip.is_loopback(),
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_this_machine_are_one_host() {
        let endpoint = |url| Endpoint::from_url("x", url).unwrap();
        let host = |text: &str| text.parse().map_or_else(|_| Host::Name(text.into()), Host::Ip);
        for (own, other, same) in [
            ("http://127.0.0.1:1", "::1", true),
            ("http://[::1]:1", "127.0.0.9", true),
            ("http://localhost:1", "127.0.0.1", true),
            ("http://127.0.0.1:1", "a.localhost", true),
            ("http://127.0.0.1:1", "10.0.0.1", false),
            ("http://10.0.0.1:1", "::1", false),
            ("http://localhost:1", "localhost.test", false),
        ] {
            assert_eq!(endpoint(own).is(&host(other), 1), same, "{own} {other}");
            assert!(!endpoint(own).is(&host(other), 2), "{own} {other}");
        }
    }

    #[test]
    fn endpoints_are_read_from_urls_of_any_scheme() {
        for (url, host, port) in [
            ("https://Registry.Test:25777/x", "registry.test", Some(25777)),
            ("http://registry.test./", "registry.test", Some(80)),
            ("nats://user:pw@10.0.0.6:4222", "10.0.0.6", Some(4222)),
            ("nats://MBUS.test", "mbus.test", None),
            ("https://[::ffff:10.0.0.6]:25250", "10.0.0.6", Some(25250)),
            ("dav://[fd01::1]:25250", "[fd01::1]", Some(25250)),
            // Written in other ways, which a URL of http would be read as, too.
            ("nats://127.1:4222", "127.0.0.1", Some(4222)),
            ("nats://0x0a000006:4222", "10.0.0.6", Some(4222)),
            ("nats://167772166:4222", "10.0.0.6", Some(4222)),
            ("nats://10.0.0.6.:4222", "10.0.0.6", Some(4222)),
            ("nats://%6dbus.test:4222", "mbus.test", Some(4222)),
            ("nats://bücher.test:4222", "xn--bcher-kva.test", Some(4222)),
        ] {
            let endpoint = Endpoint::from_url("x", url).unwrap();
            assert_eq!((endpoint.host.to_string().as_str(), endpoint.port), (host, port), "{url}");
        }
        for url in ["", "no url", "file:///var/vcap/x", "unix:/run/x"] {
            assert_eq!(Endpoint::from_url("x", url), None, "{url}");
        }
    }
}
