//! The canonical form of a guest's URL.
//!
//! A URL is parsed once, here. The policy, DNS, the TLS name, the Host header and the request
//! line all use parts of the result, and no other code parses or forwards the guest's string.
//! URLs that two parsers could read differently are rejected. Neither `Display` nor `Debug`
//! shows the query, because it may hold a secret.

use std::fmt;
use std::net::IpAddr;

use url::Url;

use wasm_cpi_checks::{Check, RefusedBy};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

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

/// The reason why a URL is rejected. The messages quote nothing of the URL except its scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// The URL is longer than the caller allows.
    #[error("the URL has {length} bytes, more than the {limit} of `url_bytes`")]
    TooLong {
        /// The length of the URL in bytes.
        length: usize,
        /// The largest length that is allowed, in bytes.
        limit: u64,
    },
    /// The scheme is neither http nor https. The text is the scheme in lower case, cut to 32
    /// characters. Callers report this as a denial, since such a scheme cannot be granted.
    #[error("the URL's scheme is `{0}`; only http and https can be granted")]
    Scheme(String),
    /// The URL is malformed or ambiguous.
    #[error("the URL {what}")]
    Form {
        /// The text that completes the sentence "the URL …".
        what: &'static str,
        /// The check that refuses the URL, if it is a named one.
        check: Option<Check>,
    },
}

impl InvalidUrl {
    const fn form(what: &'static str) -> InvalidUrl {
        InvalidUrl::Form { what, check: None }
    }

    /// Returns the check that refuses the URL, if it is a named one.
    pub fn check(&self) -> Option<Check> {
        match self {
            InvalidUrl::TooLong { .. } => None,
            InvalidUrl::Scheme(_) => Some(Check::UrlScheme),
            InvalidUrl::Form { check, .. } => *check,
        }
    }
}

impl RefusedBy for InvalidUrl {
    fn refused_by(self, check: Check) -> InvalidUrl {
        match self {
            InvalidUrl::Form { what, check: known } => InvalidUrl::Form { what, check: known.or(Some(check)) },
            other => other,
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

/// Returns the scheme. Rejects every URL that the WHATWG parser would silently repair.
fn check_shape(text: &str) -> Result<Scheme, InvalidUrl> {
    const NO_AUTHORITY: InvalidUrl =
        InvalidUrl::Form { what: "is not of the form `https://host[:port]/path`", check: Some(Check::UrlSlashes) };

    let (scheme, rest) = text.split_once(':').ok_or(NO_AUTHORITY)?;
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !well_formed {
        return Err(NO_AUTHORITY);
    }
    let scheme = scheme.to_ascii_lowercase();
    let known = match scheme.as_str() {
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        _ => None,
    };
    Check::UrlScheme.ensure(known.is_some(), || InvalidUrl::Scheme(scheme.chars().take(32).collect()))?;
    let after_slashes = rest.strip_prefix("//");
    Check::UrlSlashes.ensure(after_slashes.is_some(), || NO_AUTHORITY)?;
    let rest = after_slashes.unwrap_or(rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Check::UrlUserinfo.ensure(!authority.contains('@'), || {
        InvalidUrl::form("holds a user name or password; the policy's `auth` sends credentials")
    })?;
    Check::UrlPercentHost.ensure(!authority.contains('%'), || {
        InvalidUrl::form("has a percent-encoded host or a zone id; write the plain host")
    })?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, after) = v6.split_once(']').ok_or(NO_AUTHORITY)?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(NO_AUTHORITY),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    Check::UrlSlashes.ensure(!host.is_empty(), || NO_AUTHORITY)?;
    if let Some(port) = port {
        let digits = !port.starts_with('0') && port.chars().all(|c| c.is_ascii_digit());
        Check::UrlPort.ensure(digits && port.parse::<u16>().is_ok(), || {
            InvalidUrl::form("has a port that is not a number from 1 to 65535")
        })?;
    }
    Ok(known.unwrap_or(Scheme::Https))
}

/// Rejects names whose length or characters DNS does not allow. Names with empty labels pass:
/// no grant matches them, and the denial is the better message for the guest.
fn check_name(name: &str) -> Result<(), InvalidUrl> {
    Check::UrlNameLength.ensure(name.strip_suffix('.').unwrap_or(name).len() <= 253, || {
        InvalidUrl::form("has a host name of more than 253 characters")
    })?;
    for label in name.split('.') {
        Check::UrlNameLength.ensure(label.len() <= 63, || {
            InvalidUrl::form("has a host name with a label of more than 63 characters")
        })?;
        let plain = label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        Check::UrlNameCharacters.ensure(plain && !label.starts_with('-') && !label.ends_with('-'), || {
            InvalidUrl::form("has a host name with characters that DNS names do not have")
        })?;
    }
    Ok(())
}

/// Returns the canonical form of a path whose dot segments are resolved. Rejects encoded
/// separators, escapes of escapes and `..;`, because servers disagree about their meaning.
fn canonical_path(path: &str) -> Result<String, InvalidUrl> {
    let bytes = path.as_bytes();
    let mut canonical = String::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            canonical.push(char::from(byte));
            at += 1;
            continue;
        }
        let decoded = escape(bytes, at + 1);
        Check::PathBrokenEscape
            .ensure(decoded.is_some(), || InvalidUrl::form("has a broken percent-escape in its path"))?;
        let Some(decoded) = decoded else {
            canonical.push('%');
            at += 1;
            continue;
        };
        at += 3;
        Check::PathEncodedSlash.ensure(!matches!(decoded, b'/' | b'\\'), || {
            InvalidUrl::form("has an encoded slash or backslash in its path")
        })?;
        Check::PathEncodedControl
            .ensure(!decoded.is_ascii_control(), || InvalidUrl::form("has an encoded control character in its path"))?;
        let unreserved = decoded.is_ascii_alphanumeric() || b"-._~".contains(&decoded);
        if Check::PathUnreserved.choose(unreserved, false) {
            canonical.push(char::from(decoded));
        } else {
            canonical.push('%');
            canonical.push(char::from(HEX[usize::from(decoded >> 4)]));
            canonical.push(char::from(HEX[usize::from(decoded & 15)]));
        }
    }
    // Looked for in the result: letters that were escaped may be part of it.
    let doubly = |(at, _)| matches!(escape(canonical.as_bytes(), at + 3), Some(b'.' | b'/' | b'\\' | b'%' | b';'));
    Check::PathDoubleEncoding.ensure(!canonical.match_indices("%25").any(doubly), || {
        InvalidUrl::form("has a doubly encoded separator in its path")
    })?;
    let dots = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default();
        // Without its parameters it is a dot segment, or none, to servers that take them off.
        let bare = name.split("%3B").next().unwrap_or_default();
        matches!(bare, "." | "..") || (bare.is_empty() && !segment.is_empty())
    };
    Check::PathDotParameters.ensure(!canonical.split('/').any(dots), || {
        InvalidUrl::form("has a segment of dots, or of nothing, with parameters in its path")
    })?;
    Ok(canonical)
}

/// Returns the byte that two hexadecimal digits at this index stand for.
fn escape(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).copied().and_then(nibble);
    digit(at).zip(digit(at + 1)).map(|(high, low)| high << 4 | low)
}

/// Returns true if a canonical path is UTF-8 once its escapes are decoded.
fn is_text(path: &str) -> bool {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        let escape = (byte == b'%').then(|| Some(bytes.next().and_then(nibble)? << 4 | bytes.next().and_then(nibble)?));
        decoded.push(escape.flatten().unwrap_or(byte));
    }
    std::str::from_utf8(&decoded).is_ok()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests;
