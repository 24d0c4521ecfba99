//! The canonical form of a guest's URL.
//!
//! A URL is parsed once, here. The policy, DNS, the TLS name, the Host header and the request
//! line all use parts of the result, and no other code parses or forwards the guest's string.
//! URLs that two parsers could read differently are rejected. Neither `Display` nor `Debug`
//! shows the query, because it may hold a secret.

use std::fmt;
use std::net::IpAddr;

use url::Url;

use wasm_cpi_checks::Check;

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
pub enum Invalid {
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
    /// The URL is malformed or ambiguous; the text completes the sentence "the URL …".
    #[error("the URL {0}")]
    Form(&'static str),
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

/// Rejects names whose length or characters DNS does not allow. Names with empty labels pass:
/// no grant matches them, and the denial is the better message for the guest.
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

/// Returns the canonical form of a path whose dot segments are resolved. Rejects encoded
/// separators, escapes of escapes and `..;`, because servers disagree about their meaning.
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
