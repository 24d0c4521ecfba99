//! The canonical form of a guest's URL.
//!
//! A URL is parsed once, here, and only the parts of the result are used for the
//! policy, DNS, the TLS name, the Host header and the request line: nothing ever
//! parses or passes on the guest's string again. What could be read in two ways
//! is refused. Neither `Display` nor `Debug` shows the query, which may hold
//! what no log should.

use std::fmt;
use std::net::IpAddr;

use url::Url;

use crate::holes::Check;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Lower case, A-labels. A trailing dot stays, and no grant matches it.
    Name(String),
    /// Never an IPv4-mapped IPv6 address: those are folded to IPv4.
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

/// Why a URL is no destination. The texts quote nothing of the URL but a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Ends as the limit `url_bytes`.
    #[error("the URL has {length} bytes, more than the {limit} of `url_bytes`")]
    TooLong { length: usize, limit: u64 },
    /// Ends as a denial, as every other scheme is simply not granted.
    #[error("the URL's scheme is `{0}`; only http and https can be granted")]
    Scheme(String),
    #[error("the URL {0}")]
    Form(&'static str),
}

#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    scheme: Scheme,
    host: Host,
    port: u16,
    /// Holds exactly these parts, the canonical path and the query.
    url: Url,
}

impl Destination {
    pub fn parse(text: &str, max_bytes: u64) -> Result<Destination, Invalid> {
        if text.len() as u64 > max_bytes {
            return Err(Invalid::TooLong { length: text.len(), limit: max_bytes });
        }
        // The WHATWG parser strips tabs and line ends and reads `\` as `/`.
        if Check::UrlCharacters.on() && text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err(Invalid::Form("holds a space, control character or backslash; percent-encode it"));
        }
        let scheme = check_shape(text)?;
        let mut url = Url::parse(text).map_err(|_| Invalid::Form("has no valid host name or address"))?;
        let host = match url.host() {
            Some(url::Host::Domain(name)) => {
                check_name(name)?;
                Host::Name(name.to_owned())
            }
            Some(url::Host::Ipv4(ip)) => Host::Ip(ip.into()),
            Some(url::Host::Ipv6(ip)) => Host::Ip(IpAddr::V6(ip).to_canonical()),
            None => return Err(Invalid::Form("has no host")),
        };
        let path = canonical_path(url.path())?;
        // `%C0%AE` is no text, and a dot to decoders that do not know it.
        if Check::PathText.on() && !is_text(&path) {
            return Err(Invalid::Form("has escapes in its path that are no UTF-8"));
        }
        url.set_path(&path);
        url.set_fragment(None);
        if let Host::Ip(ip) = host
            && url.set_ip_host(ip).is_err()
        {
            return Err(Invalid::Form("has no valid address"));
        }
        if url.path() != path {
            return Err(Invalid::Form("has a path without one canonical form"));
        }
        let port = url.port().unwrap_or(scheme.default_port());
        Ok(Destination { scheme, host, port, url })
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Begins with `/`; dot segments resolved, unreserved characters decoded.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// Never for logs.
    pub fn query(&self) -> Option<&str> {
        self.url.query()
    }

    /// `scheme://host[:port]`, without the scheme's default port.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.host_header())
    }

    pub fn host_header(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// What the transport requests.
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

/// What the WHATWG parser would repair silently is refused before it is asked.
fn check_shape(text: &str) -> Result<Scheme, Invalid> {
    const NO_AUTHORITY: Invalid = Invalid::Form("is not of the form `https://host[:port]/path`");
    const BAD_PORT: Invalid = Invalid::Form("has a port that is not a number from 1 to 65535");

    let (scheme, rest) = text.split_once(':').ok_or(NO_AUTHORITY)?;
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !well_formed {
        return Err(NO_AUTHORITY);
    }
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other if Check::UrlScheme.on() => return Err(Invalid::Scheme(other.chars().take(32).collect())),
        _ => Scheme::Https,
    };
    let rest = rest.strip_prefix("//").or((!Check::UrlSlashes.on()).then_some(rest)).ok_or(NO_AUTHORITY)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if Check::UrlUserinfo.on() && authority.contains('@') {
        return Err(Invalid::Form("holds a user name or password; the policy's `auth` sends credentials"));
    }
    if Check::UrlPercentHost.on() && authority.contains('%') {
        return Err(Invalid::Form("has a percent-encoded host or a zone id; write the plain host"));
    }
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
    if Check::UrlSlashes.on() && host.is_empty() {
        return Err(NO_AUTHORITY);
    }
    if let Some(port) = port {
        let digits = !port.starts_with('0') && port.chars().all(|c| c.is_ascii_digit());
        if Check::UrlPort.on() && (!digits || port.parse::<u16>().is_err()) {
            return Err(BAD_PORT);
        }
    }
    Ok(scheme)
}

/// Lengths and characters of DNS. Empty labels pass: they match no grant, and
/// the guest is better told that than that its URL is malformed.
fn check_name(name: &str) -> Result<(), Invalid> {
    if Check::UrlNameLength.on() && name.strip_suffix('.').unwrap_or(name).len() > 253 {
        return Err(Invalid::Form("has a host name of more than 253 characters"));
    }
    for label in name.split('.') {
        if Check::UrlNameLength.on() && label.len() > 63 {
            return Err(Invalid::Form("has a host name with a label of more than 63 characters"));
        }
        let plain = label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        if Check::UrlNameCharacters.on() && (!plain || label.starts_with('-') || label.ends_with('-')) {
            return Err(Invalid::Form("has a host name with characters that DNS names do not have"));
        }
    }
    Ok(())
}

/// Takes a path whose dot segments are resolved. Servers disagree on encoded
/// separators, on escapes of escapes and on `..;`, so none of them may pass.
fn canonical_path(path: &str) -> Result<String, Invalid> {
    const BROKEN: Invalid = Invalid::Form("has a broken percent-escape in its path");

    let bytes = path.as_bytes();
    let mut canonical = String::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            canonical.push(char::from(byte));
            at += 1;
            continue;
        }
        let Some(decoded) = escape(bytes, at + 1) else {
            if Check::PathBrokenEscape.on() {
                return Err(BROKEN);
            }
            canonical.push('%');
            at += 1;
            continue;
        };
        at += 3;
        match decoded {
            b'/' | b'\\' if Check::PathEncodedSlash.on() => {
                return Err(Invalid::Form("has an encoded slash or backslash in its path"));
            }
            0..=0x1f | 0x7f if Check::PathEncodedControl.on() => {
                return Err(Invalid::Form("has an encoded control character in its path"));
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' if Check::PathUnreserved.on() => {
                canonical.push(char::from(decoded));
            }
            other => {
                canonical.push('%');
                canonical.push(char::from(HEX[usize::from(other >> 4)]));
                canonical.push(char::from(HEX[usize::from(other & 15)]));
            }
        }
    }
    // Looked for in the result: letters that were escaped may be part of it.
    let doubly = |(at, _)| matches!(escape(canonical.as_bytes(), at + 3), Some(b'.' | b'/' | b'\\' | b'%' | b';'));
    if Check::PathDoubleEncoding.on() && canonical.match_indices("%25").any(doubly) {
        return Err(Invalid::Form("has a doubly encoded separator in its path"));
    }
    let dots = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default();
        // Without its parameters it is a dot segment, or none, to servers that take them off.
        let bare = name.split("%3B").next().unwrap_or_default();
        matches!(bare, "." | "..") || (bare.is_empty() && !segment.is_empty())
    };
    if Check::PathDotParameters.on() && canonical.split('/').any(dots) {
        return Err(Invalid::Form("has a segment of dots, or of nothing, with parameters in its path"));
    }
    Ok(canonical)
}

/// The byte that two hex digits at this place stand for.
fn escape(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).copied().and_then(nibble);
    digit(at).zip(digit(at + 1)).map(|(high, low)| high << 4 | low)
}

/// Whether a canonical path is text once its escapes are decoded.
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
