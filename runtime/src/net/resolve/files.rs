//! The two files that say how names become addresses: `hosts` and `resolv.conf`.
//!
//! Pure: text in, values out. A line that makes no sense is skipped, as the C
//! library does, because one odd line must not take the whole machine's names
//! away. Names in place of name servers' addresses are never looked up.

use std::net::{IpAddr, Ipv4Addr};

/// As many as the C library looks at.
const MAX_SERVERS: usize = 3;
const MAX_SEARCH: usize = 6;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Servers {
    pub addresses: Vec<IpAddr>,
    /// Suffixes for names without a dot.
    pub search: Vec<String>,
    /// `options use-vc`.
    pub tcp_only: bool,
}

/// All addresses that a hosts file gives to a name.
pub(crate) fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
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
    fn a_hosts_file_gives_every_address_of_a_name_once() {
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
            assert_eq!(in_hosts(text, name), expected, "{name}");
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
    fn without_name_servers_this_machine_is_asked() {
        assert_eq!(Servers::parse("").addresses, [IpAddr::from([127, 0, 0, 1])]);
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_readers(text in "\\PC{0,40}(\n(nameserver|search|options|[0-9.:]{1,9}) \\PC{0,20}){0,9}") {
            let servers = Servers::parse(&text);
            prop_assert!((1..=MAX_SERVERS).contains(&servers.addresses.len()));
            prop_assert!(servers.search.len() <= MAX_SEARCH);
            in_hosts(&text, "api.test");
        }
    }
}
