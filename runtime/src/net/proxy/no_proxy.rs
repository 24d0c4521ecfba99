//! One entry of `no_proxy`: destinations that are connected to without a proxy. Entries
//! mean the same as in other programs: a name matches itself and all names below
//! it, with or without a leading dot; a network matches resolved addresses.

use ipnet::IpNet;
use std::net::IpAddr;
use wasm_cpi_policy::destination::Host;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoProxyEntry {
    pattern: Pattern,
    /// `None` matches all ports.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    All,
    /// In lower case, without leading and trailing dots.
    Name(String),
    Net(IpNet),
}

impl NoProxyEntry {
    pub(super) fn parse(entry: &str) -> Option<NoProxyEntry> {
        if entry == "*" {
            return Some(NoProxyEntry { pattern: Pattern::All, port: None });
        }
        if let Some(net) = net(bare(entry)) {
            return Some(NoProxyEntry { pattern: Pattern::Net(net), port: None });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        let pattern = match net(bare(host)) {
            Some(net) => Pattern::Net(net),
            None => Pattern::Name(name(host)?),
        };
        Some(NoProxyEntry { pattern, port })
    }

    /// Returns true if the destination is connected to directly. A network must contain all
    /// addresses.
    pub(super) fn matches(&self, host: &Host, port: u16, addresses: &[IpAddr]) -> bool {
        let same = match (&self.pattern, host) {
            (Pattern::All, _) => true,
            (Pattern::Net(net), _) => !addresses.is_empty() && addresses.iter().all(|address| net.contains(address)),
            (Pattern::Name(_), Host::Ip(_)) => false,
            (Pattern::Name(name), Host::Name(host)) => {
                let rest = host.strip_suffix(name.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
        };
        same && self.port.is_none_or(|own| own == port)
    }
}

/// Removes the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn net(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(|ip| IpNet::from(ip.to_canonical())))
}

fn name(text: &str) -> Option<String> {
    let text = text.strip_prefix('*').unwrap_or(text).trim_matches('.').to_lowercase();
    let usual = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    (!text.is_empty() && text.chars().all(usual)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_match_the_same_destinations_as_in_other_programs() {
        for (entry, host, port, address, direct) in [
            ("*", "a.test", 443, "10.0.0.1", true),
            ("a.test", "a.test", 443, "10.0.0.1", true),
            ("A.Test", "a.test", 443, "10.0.0.1", true),
            ("a.test", "b.a.test", 443, "10.0.0.1", true),
            (".a.test", "a.test", 443, "10.0.0.1", true),
            ("*.a.test", "b.a.test", 443, "10.0.0.1", true),
            ("a.test", "ba.test", 443, "10.0.0.1", false),
            ("a.test", "a.test.b", 443, "10.0.0.1", false),
            ("a.test:8443", "a.test", 8443, "10.0.0.1", true),
            ("a.test:8443", "a.test", 443, "10.0.0.1", false),
            ("10.0.0.1", "10.0.0.1", 443, "10.0.0.1", true),
            ("10.0.0.1", "a.test", 443, "10.0.0.1", true),
            ("10.0.0.1:443", "10.0.0.1", 443, "10.0.0.1", true),
            ("10.0.0.0/8", "a.test", 443, "10.9.0.1", true),
            ("10.0.0.0/8", "a.test", 443, "11.9.0.1", false),
            ("fd00::/8", "a.test", 443, "fd01::1", true),
            ("[fd01::1]:443", "a.test", 443, "fd01::1", true),
            ("fd01::1", "a.test", 443, "fd01::1", true),
            ("[fd01::1]", "a.test", 443, "fd01::1", true),
            ("10.0.0.1", "110.0.0.1", 443, "110.0.0.1", false),
        ] {
            let host = host.parse().map_or_else(|_| Host::Name(host.to_owned()), Host::Ip);
            let entry = (entry, NoProxyEntry::parse(entry).unwrap());
            assert_eq!(entry.1.matches(&host, port, &[address.parse().unwrap()]), direct, "{} {host}", entry.0);
        }
    }

    #[test]
    fn a_network_must_contain_all_addresses_of_the_host() {
        let entry = NoProxyEntry::parse("10.0.0.0/8").unwrap();
        let addresses: Vec<IpAddr> = ["10.0.0.1", "11.0.0.1"].map(|ip| ip.parse().unwrap()).into();
        assert!(!entry.matches(&Host::Name("a.test".into()), 443, &addresses));
        assert!(!entry.matches(&Host::Name("a.test".into()), 443, &[]));
    }

    #[test]
    fn invalid_entries_are_rejected() {
        for entry in
            ["10.0.0.0/99", "a b", "a.test:port", "http://a.test", ".", "a/b", "10.*", "<local>", "fe80::1%eth0"]
        {
            assert_eq!(NoProxyEntry::parse(entry), None, "{entry}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
            let _ = NoProxyEntry::parse(&text);
        }
    }
}
