//! The operator's HTTP proxies, the section `proxy` of the config, and the
//! destinations that they are used for.
//!
//! The runtime resolves the name and checks the address; the proxy is asked by
//! CONNECT for that address, for http:// as well. It is never asked for a name,
//! which it might resolve to another address. Neither the environment nor a guest
//! can change these settings.

mod no_proxy;
pub(super) mod tunnel;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use no_proxy::NoProxyEntry;
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use url::Url;
use wasm_cpi_policy::destination::{Destination, Host, Scheme};
use wasm_cpi_policy::secret::Secret;
use zeroize::Zeroizing;

/// The section `proxy` of the config.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Section")]
pub struct ProxyConfig {
    http: Option<Proxy>,
    https: Option<Proxy>,
    no_proxy: Vec<NoProxyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    http: Option<String>,
    https: Option<String>,
    #[serde(default)]
    no_proxy: Vec<String>,
}

/// One proxy. Neither `Display` nor `Debug` shows its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    pub(super) host: Host,
    pub(super) port: u16,
    password: Option<Secret>,
    /// The value of `Proxy-Authorization`.
    authorization: Option<Secret>,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl TryFrom<Section> for ProxyConfig {
    type Error = String;

    /// Errors name the key only, because values may hold credentials.
    fn try_from(section: Section) -> Result<Self, String> {
        let read = |key: &str, url: Option<String>| {
            let wrong = || format!("`{key}` must be the URL of an HTTP proxy: http://[user:password@]host:port");
            url.map(|url| Proxy::parse(&url).ok_or_else(wrong)).transpose()
        };
        let mut no_proxy = Vec::new();
        for (index, entry) in section.no_proxy.iter().map(|entry| entry.trim()).enumerate() {
            if !entry.is_empty() {
                no_proxy.push(NoProxyEntry::parse(entry).ok_or_else(|| {
                    format!("`no_proxy[{index}]` must be a name, an address, a network like 10.0.0.0/8 (and not 10.*), or `*`")
                })?);
            }
        }
        Ok(ProxyConfig { http: read("http", section.http)?, https: read("https", section.https)?, no_proxy })
    }
}

impl Proxy {
    fn parse(text: &str) -> Option<Proxy> {
        let url = Url::parse(text).ok().filter(|url| url.scheme() == "http")?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return None;
        }
        let host = match url.host()? {
            url::Host::Ipv4(ip) => Host::Ip(ip.into()),
            url::Host::Ipv6(ip) => Host::Ip(IpAddr::V6(ip).to_canonical()),
            url::Host::Domain(name) => Host::Name(name.trim_end_matches('.').to_owned()),
        };
        let user = decoded(url.username())?;
        let password = decoded(url.password().unwrap_or_default())?;
        let known = !user.is_empty() || !password.is_empty();
        let authorization = known.then(|| {
            let pair = Zeroizing::new(format!("{}:{}", *user, *password));
            Secret::new(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())))
        });
        let password = (!password.is_empty()).then(|| Secret::new(password.as_str()));
        Some(Proxy { host, port: url.port_or_known_default()?, password, authorization })
    }
}

/// Decodes percent-encoding. Rejects control characters, which would end the line of a header.
fn decoded(text: &str) -> Option<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |digit: Option<u8>| char::from(digit?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            byte => byte,
        });
    }
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    (!text.contains(char::is_control)).then(|| Zeroizing::new(text))
}

impl ProxyConfig {
    fn all(&self) -> impl Iterator<Item = &Proxy> {
        self.http.iter().chain(&self.https)
    }

    /// Returns what a kept token depends on: the proxies with their credentials.
    pub(super) fn token_key_parts(&self) -> Vec<Secret> {
        let text =
            |proxy: &Proxy| Secret::new(format!("{proxy} {}", proxy.authorization.as_ref().map_or("", Secret::reveal)));
        self.all().map(text).collect()
    }

    /// Returns the proxy for a destination with these addresses, and those of them that it is asked for; `None` if the
    /// connection is direct.
    pub fn proxy_for(&self, destination: &Destination, addresses: &[IpAddr]) -> Option<(&Proxy, Vec<IpAddr>)> {
        let proxy = match destination.scheme() {
            Scheme::Http => self.http.as_ref()?,
            Scheme::Https => self.https.as_ref()?,
        };
        // A proxy would connect to its own loopback address, not to this machine's.
        let here = |address: &IpAddr| address.to_canonical().is_loopback();
        let named = |entry: &NoProxyEntry| entry.matches(destination.host(), destination.port(), addresses);
        if addresses.iter().all(here) || self.no_proxy.iter().any(named) {
            return None;
        }
        Some((proxy, addresses.iter().copied().filter(|address| !here(address)).collect()))
    }

    /// Returns the ports of all proxies.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.all().map(|proxy| proxy.port)
    }

    /// Returns the proxies as endpoints that no grant can open: their name in messages, and their
    /// URL without credentials.
    pub fn endpoints(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.all().map(|proxy| ("the proxy", format!("http://{proxy}")))
    }

    /// Returns the passwords, and the header values that hold them.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> {
        self.all().flat_map(|proxy| proxy.password.iter().chain(&proxy.authorization)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(section: serde_json::Value) -> Result<ProxyConfig, String> {
        serde_json::from_value(section).map_err(|error| error.to_string())
    }

    #[test]
    fn a_proxy_is_parsed_from_its_url_and_debug_output_hides_its_credentials() {
        let config = parsed(json!({"https": "http://us%65r:p%40ss%3Aword@Proxy.Test:3128/"})).unwrap();
        let proxy = config.https.as_ref().unwrap();
        assert_eq!((proxy.to_string().as_str(), proxy.port), ("proxy.test:3128", 3128));
        let expected = format!("Basic {}", BASE64_STANDARD.encode("user:p@ss:word"));
        assert_eq!(proxy.authorization.as_ref().unwrap().reveal(), expected);
        let secrets: Vec<String> = config.secrets().map(|secret| secret.reveal().to_owned()).collect();
        assert_eq!(secrets, ["p@ss:word".to_owned(), expected]);
        assert!(!format!("{config:?}").contains("ss"), "{config:?}");
        let open = parsed(json!({"http": "http://10.0.0.1"})).unwrap();
        assert_eq!((open.ports().collect::<Vec<_>>(), open.secrets().count()), (vec![80], 0));
        assert_eq!(open.endpoints().collect::<Vec<_>>(), [("the proxy", "http://10.0.0.1:80".to_owned())]);
    }

    #[test]
    fn the_error_of_an_invalid_proxy_names_its_key_and_does_not_quote_its_url() {
        for (key, value) in [
            ("https", json!("https://hunter2.test")),
            ("https", json!("socks5://hunter2.test")),
            ("http", json!("hunter2.test:3128")),
            ("http", json!("http://hunter2.test/path")),
            ("http", json!("http://hunter2.test/?q")),
            ("http", json!("http://u:hunter2%0d%0a@x.test")),
            ("http", json!("http://u:hunter2%zz@x.test")),
        ] {
            let error = parsed(json!({key: value})).unwrap_err();
            assert!(error.contains(&format!("`{key}`")) && !error.contains("hunter2"), "{error}");
        }
        assert!(parsed(json!({"https_proxy": "http://x.test"})).is_err());
    }

    #[test]
    fn the_error_of_an_invalid_no_proxy_entry_names_its_index_and_does_not_quote_it() {
        for (entries, place) in [
            (json!(["10.0.0.0/99"]), "`no_proxy[0]`"),
            (json!(["a.test", "", "10.*"]), "`no_proxy[2]`"),
            (json!(["*", "<hunter2>"]), "`no_proxy[1]`"),
            (json!(["fe80::1%hunter2"]), "`no_proxy[0]`"),
        ] {
            let error = parsed(json!({"no_proxy": entries})).unwrap_err();
            assert!(error.contains(place) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn each_scheme_has_its_own_proxy_and_loopback_has_none() {
        let config = parsed(json!({"https": "http://p.test:1", "no_proxy": ["direct.test"]})).unwrap();
        for (url, addresses, asked) in [
            ("https://a.test/", &["10.0.0.1"][..], Some(&["10.0.0.1"][..])),
            ("http://a.test/", &["10.0.0.1"], None),
            ("https://direct.test/", &["10.0.0.1"], None),
            ("https://a.test/", &["127.0.0.1", "::1"], None),
            ("https://a.test/", &["127.0.0.1", "10.0.0.1", "::ffff:127.0.0.1"], Some(&["10.0.0.1"])),
        ] {
            let destination = Destination::parse(url, 1000).unwrap();
            let all: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            let proxied = config.proxy_for(&destination, &all).map(|(_, addresses)| addresses);
            let proxied = proxied.map(|left| left.iter().map(IpAddr::to_string).collect::<Vec<_>>());
            assert_eq!(proxied.as_deref().map(|left| left.join(" ")), asked.map(|asked| asked.join(" ")), "{url}");
        }
    }
}
