//! Parsers for `hosts` and `resolv.conf`, without IO.
//!
//! Like the C library, they skip a malformed line, because one such line must not
//! break all lookups of the machine. A name server that is given by its name is
//! skipped, too.

use std::net::{IpAddr, Ipv4Addr};

/// The maximum numbers that the C library uses.
const MAX_SERVERS: usize = 3;
const MAX_SEARCH: usize = 6;

/// The settings in `resolv.conf`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Servers {
    pub addresses: Vec<IpAddr>,
    /// The suffixes to try for names without a dot.
    pub search: Vec<String>,
    /// True if `options use-vc` is set.
    pub tcp_only: bool,
}

/// Returns all addresses of a name in the text of a hosts file.
pub(crate) fn addresses_in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse().ok()) else { continue };
        if words.any(|word| word.eq_ignore_ascii_case(name)) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

impl Servers {
    pub(crate) fn parse(text: &str) -> Self {
        let mut servers = Servers { addresses: Vec::new(), search: Vec::new(), tcp_only: false };
        for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") if servers.addresses.len() < MAX_SERVERS => {
                    servers.addresses.extend(words.next().and_then(|word| word.parse::<IpAddr>().ok()));
                }
                Some("search" | "domain") => {
                    let suffixes = words.map(|word| word.trim_end_matches('.').to_ascii_lowercase());
                    servers.search = suffixes.filter(|word| !word.is_empty()).take(MAX_SEARCH).collect();
                }
                Some("options") => servers.tcp_only |= words.any(|word| word == "use-vc"),
                _ => {}
            }
        }
        if servers.addresses.is_empty() {
            servers.addresses.push(Ipv4Addr::LOCALHOST.into());
        }
        servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_address_of_a_name_in_a_hosts_file_is_returned_once() {
        let text = "127.0.0.1 localhost\n10.0.0.1\tapi.test API # api2.test\n# 10.0.0.2 api.test\n\
                    fd00::1 api.test\n10.0.0.1 api.test\nnonsense api.test\nfe80::1%eth0 api.test\n10.0.0.9\n";
        let cases: &[(&str, &[&str])] = &[
            ("localhost", &["127.0.0.1"]),
            ("api.test", &["10.0.0.1", "fd00::1"]),
            ("API.TEST", &["10.0.0.1", "fd00::1"]),
            ("api", &["10.0.0.1"]),
            ("api2.test", &[]),
            ("test", &[]),
            ("", &[]),
        ];
        for (name, expected) in cases {
            let expected: Vec<IpAddr> = expected.iter().map(|a| a.parse().unwrap()).collect();
            assert_eq!(addresses_in_hosts(text, name), expected, "{name}");
        }
    }

    #[test]
    fn resolv_conf_is_read_as_the_c_library_reads_it() {
        let text = "; comment\n# comment\nnameserver 10.0.0.53\nnameserver ns.example\nnameserver fd00::53\n\
                    domain old.test\nsearch One.test. two.test .\noptions ndots:5 use-vc unknown:1\nsortlist 1.2.3.4\n\
                    nameserver 10.0.0.54\nnameserver 10.0.0.55\nwhatever\n";
        let expected = Servers {
            addresses: ["10.0.0.53", "fd00::53", "10.0.0.54"].iter().map(|a| a.parse().unwrap()).collect(),
            search: vec!["one.test".into(), "two.test".into()],
            tcp_only: true,
        };
        assert_eq!(Servers::parse(text), expected);
    }

    #[test]
    fn without_name_servers_the_loopback_address_is_used() {
        assert_eq!(Servers::parse("").addresses, [IpAddr::from([127, 0, 0, 1])]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}(\n(nameserver|search|options|[0-9.:]{1,9}) \\PC{0,20}){0,9}") {
            let servers = Servers::parse(&text);
            prop_assert!((1..=MAX_SERVERS).contains(&servers.addresses.len()));
            prop_assert!(servers.search.len() <= MAX_SEARCH);
            addresses_in_hosts(&text, "api.test");
        }
    }
}
