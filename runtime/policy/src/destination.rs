//! The canonical form of a guest's URL.
//!
//! A URL is parsed once, here. The policy, DNS, the TLS name, the Host header and the request
//! line all use parts of the result, and no other code parses or forwards the guest's string.
//! URLs that two parsers could read differently are rejected. Neither `Display` nor `Debug`
//! shows the query, because it may hold a secret.

mod canonical_path;
mod invalid_url;
mod shape;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use url::Url;

use canonical_path::{canonical_path, is_text};
pub use invalid_url::InvalidUrl;
use shape::{check_name, check_shape};
use wasm_cpi_checks::Check;

/// The scheme of a URL. All other schemes are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Unencrypted HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// Returns the scheme as URLs write it, in lower case and without `://`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// Returns the port that a URL without one means: 80 or 443.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// The host of a URL in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A DNS name in lower case, with international labels as A-labels (`xn--…`). A trailing
    /// dot is kept, and no grant matches such a name.
    Name(String),
    /// An IP address. An IPv4-mapped IPv6 address is always converted to IPv4.
    Ip(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}"),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

/// A URL in canonical form: what the policy judges is exactly what is sent.
///
/// It has no user name, password or fragment, and its path has no dot segments.
#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    scheme: Scheme,
    host: Host,
    port: u16,
    /// Holds exactly the parts above, the canonical path and the query.
    url: Url,
}

impl Destination {
    /// Parses an absolute http or https URL of at most `max_bytes` bytes.
    ///
    /// Rejects every URL that parsers are known to read differently, such as one with a user
    /// name, a backslash, an encoded slash or a doubly encoded separator.
    ///
    /// ```
    /// use wasm_cpi_policy::destination::Destination;
    ///
    /// let destination = Destination::parse("https://API.iaas.test/v1/a/../b?x=1", 2048).unwrap();
    /// assert_eq!(destination.origin(), "https://api.iaas.test");
    /// assert_eq!((destination.path(), destination.query()), ("/v1/b", Some("x=1")));
    /// assert!(Destination::parse("https://user@api.iaas.test/", 2048).is_err());
    /// ```
    pub fn parse(text: &str, max_bytes: u64) -> Result<Destination, InvalidUrl> {
        if text.len() as u64 > max_bytes {
            return Err(InvalidUrl::TooLong { length: text.len(), limit: max_bytes });
        }
        // The WHATWG parser strips tabs and line ends and reads `\` as `/`.
        let plain = !text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\');
        Check::UrlCharacters
            .ensure(plain, || InvalidUrl::form("holds a space, control character or backslash; percent-encode it"))?;
        let scheme = check_shape(text)?;
        let mut url = Url::parse(text).map_err(|_| InvalidUrl::form("has no valid host name or address"))?;
        let host = match url.host() {
            Some(url::Host::Domain(name)) => {
                check_name(name)?;
                Host::Name(name.to_owned())
            }
            Some(url::Host::Ipv4(ip)) => Host::Ip(ip.into()),
            Some(url::Host::Ipv6(ip)) => Host::Ip(IpAddr::V6(ip).to_canonical()),
            None => return Err(InvalidUrl::form("has no host")),
        };
        let path = canonical_path(url.path())?;
        // `%C0%AE` is not UTF-8, and lenient decoders read it as a dot.
        Check::PathText.ensure(is_text(&path), || InvalidUrl::form("has escapes in its path that are not UTF-8"))?;
        url.set_path(&path);
        url.set_fragment(None);
        if let Host::Ip(ip) = host
            && url.set_ip_host(ip).is_err()
        {
            return Err(InvalidUrl::form("has no valid address"));
        }
        if url.path() != path {
            return Err(InvalidUrl::form("has a path without one canonical form"));
        }
        let port = url.port().unwrap_or(scheme.default_port());
        Ok(Destination { scheme, host, port, url })
    }

    /// Parses the URL of a guest's request. In addition to what [`Destination::parse`] rejects, the
    /// host must be written in ASCII: an operator's file may name a host as people write it, but a
    /// guest has no reason to rely on a conversion.
    ///
    /// ```
    /// use wasm_cpi_policy::destination::Destination;
    ///
    /// assert!(Destination::parse("https://b\u{fc}cher.test/", 2048).is_ok());
    /// assert!(Destination::from_guest("https://b\u{fc}cher.test/", 2048).is_err());
    /// assert!(Destination::from_guest("https://xn--bcher-kva.test/\u{fc}", 2048).is_ok());
    /// ```
    pub fn from_guest(text: &str, max_bytes: u64) -> Result<Destination, InvalidUrl> {
        let destination = Destination::parse(text, max_bytes)?;
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        Check::UrlHostAscii.ensure(authority.is_ascii(), || {
            InvalidUrl::form("has a host with characters outside of ASCII; write an international name as `xn--…`")
        })?;
        Ok(destination)
    }

    /// Returns the scheme, which decides whether TLS is used.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host to resolve and connect to.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port to connect to, which is the scheme's default if the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path, which begins with `/`. Dot segments are resolved, and needless escapes
    /// of unreserved characters are decoded.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// Returns the query without its `?`. It may hold secrets and must not be logged.
    pub fn query(&self) -> Option<&str> {
        self.url.query()
    }

    /// Returns `scheme://host[:port]`; the port is left out if it is the scheme's default.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.host_header())
    }

    /// Returns the value of the Host header: `host[:port]`, without the scheme's default port.
    pub fn host_header(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Returns the destination with another query, which must be urlencoded; empty for none.
    #[must_use]
    pub fn with_query(&self, query: &str) -> Destination {
        let mut changed = self.clone();
        changed.url.set_query(Some(query).filter(|query| !query.is_empty()));
        changed
    }

    /// Returns the URL that is sent, query included.
    pub fn to_url(&self) -> Url {
        self.url.clone()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path())
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Destination({self})")
    }
}
