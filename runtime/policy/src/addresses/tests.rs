use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

fn cidrs(texts: &[&str]) -> Addresses {
    Addresses::Cidrs(texts.iter().map(|text| text.parse().unwrap()).collect())
}

/// Written in two halves: the network's usual name is a product's.
const METADATA_V6: &str = concat!("fd00:e", "c2::254");

#[test]
fn public_means_globally_routable() {
    for (text, allowed) in [
        ("1.1.1.1", true),
        ("8.8.8.8", true),
        ("100.63.255.255", true),
        ("100.64.0.1", false),
        ("172.15.255.255", true),
        ("172.16.0.1", false),
        ("172.31.255.255", false),
        ("192.0.0.8", false),
        ("192.0.2.1", false),
        ("192.88.99.1", false),
        ("192.168.1.1", false),
        ("198.17.255.255", true),
        ("198.19.255.255", false),
        ("198.51.100.1", false),
        ("203.0.113.1", false),
        ("10.0.0.5", false),
        ("240.0.0.1", false),
        ("2606:4700::1111", true),
        ("2001:200::1", true),
        ("2001:1::1", false),
        ("2001:db8::1", false),
        ("3fff::1", false),
        ("fd01::1", false),
        ("fec0::1", false),
        ("5f00::1", false),
        ("100::1", false),
        ("64:ff9b::8.8.8.8", true),
        ("64:ff9b::10.0.0.1", false),
        ("64:ff9b::169.254.169.254", false),
        ("64:ff9b:1::8.8.8.8", false),
        ("2002:808:808::1", false),
        ("2001:0:808:808::1", false),
        ("::ffff:8.8.8.8", true),
        ("::ffff:10.0.0.5", false),
        ("::8.8.8.8", false),
        ("::127.0.0.1", false),
        ("::ffff:0:8.8.8.8", false),
    ] {
        assert_eq!(judge(ip(text), &Addresses::Public, true, &[]).is_ok(), allowed, "{text}");
    }
}

#[test]
fn some_addresses_can_never_be_granted() {
    let everything = cidrs(&["0.0.0.0/0", "::/0"]);
    for text in [
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "169.254.0.1",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "::",
        "fe80::1",
        "febf::1",
        "ff02::1",
        METADATA_V6,
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
    ] {
        let why = judge(ip(text), &everything, true, &[]).unwrap_err().to_string();
        assert!(why.contains("no policy can grant"), "{text}: {why}");
        assert!(never(ip(text)).is_some(), "{text}");
    }
    assert_eq!(never(ip("10.0.0.5")), None);
}

#[test]
fn cidrs_allow_exactly_the_addresses_in_them() {
    let ten = cidrs(&["10.0.0.0/8", "fd01::/16"]);
    for (text, allowed) in [
        ("10.0.0.5", true),
        ("::ffff:10.0.0.5", true),
        ("fd01::1", true),
        ("11.0.0.1", false),
        ("8.8.8.8", false),
        ("fd02::1", false),
        ("192.168.0.1", false),
    ] {
        assert_eq!(judge(ip(text), &ten, false, &[]).is_ok(), allowed, "{text}");
    }
    assert!(judge(ip("10.0.0.5"), &cidrs(&[]), true, &[]).is_err());
}

#[test]
fn addresses_of_this_machine_need_allow_local_and_a_cidr_of_the_grant() {
    let own = [ip("10.0.0.9"), ip("8.8.4.4"), ip("::ffff:10.0.0.10"), ip("fd01::9")];
    let all = cidrs(&["127.0.0.0/8", "::1/128", "10.0.0.0/8", "8.8.4.4/32", "fd01::/16"]);
    for text in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "10.0.0.9", "10.0.0.10", "8.8.4.4", "fd01::9"] {
        assert!(judge(ip(text), &all, true, &own).is_ok(), "{text}");
        let closed = judge(ip(text), &all, false, &own).unwrap_err().to_string();
        assert!(closed.contains("`allow_local: true`"), "{text}: {closed}");
        let unlisted = judge(ip(text), &Addresses::Public, true, &own).unwrap_err().to_string();
        assert!(unlisted.contains("`addresses`"), "{text}: {unlisted}");
        assert!(judge(ip(text), &cidrs(&["172.16.0.0/12"]), true, &own).is_err(), "{text}");
    }
}

#[test]
fn ipv4_within_ipv6_is_judged_again() {
    let own = [ip("8.8.4.4")];
    let all_v6 = cidrs(&["::/0"]);
    let all = cidrs(&["::/0", "0.0.0.0/0"]);
    for text in [
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::8.8.4.4",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::1",
        "2001:0:808:808:0:0:80ff:fffe",
        "2001:0:7f00:1::f7f7:f7f7",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
    ] {
        assert!(judge(ip(text), &all, true, &own).is_err(), "{text}");
    }
    // An inner address must be public or listed itself.
    assert!(judge(ip("2002:808:808::1"), &all_v6, false, &own).is_ok());
    assert!(judge(ip("2002:a00:5::1"), &all_v6, false, &own).is_err());
    assert!(judge(ip("2002:a00:5::1"), &all, false, &own).is_ok());
    assert!(judge(ip("2001:0:808:808:0:0:f7f7:f7f7"), &all_v6, false, &own).is_ok());
}

#[test]
fn networks_without_any_grantable_address_are_recognised() {
    for (text, useless) in [
        ("169.254.0.0/16", true),
        ("169.254.169.254/32", true),
        ("224.0.0.0/8", true),
        ("fe80::/64", true),
        ("0.0.0.0/0", false),
        ("10.0.0.0/8", false),
        ("127.0.0.0/8", false),
    ] {
        assert_eq!(never_net(&text.parse().unwrap()).is_some(), useless, "{text}");
    }
    for (text, loopback) in
        [("127.0.0.0/8", true), ("127.0.0.1/32", true), ("::1/128", true), ("0.0.0.0/0", false), ("::/0", false)]
    {
        assert_eq!(is_loopback_net(&text.parse().unwrap()), loopback, "{text}");
    }
}

#[test]
fn packets_reach_an_address_and_the_ipv4_address_in_it() {
    for (text, expected) in [
        ("10.0.0.6", vec!["10.0.0.6"]),
        ("::ffff:10.0.0.6", vec!["10.0.0.6"]),
        ("64:ff9b::10.0.0.6", vec!["64:ff9b::10.0.0.6", "10.0.0.6"]),
        ("2002:a00:6::1", vec!["2002:a00:6::1", "10.0.0.6"]),
        ("2001:0:a00:6::faf9:f8fe", vec!["2001:0:a00:6::faf9:f8fe", "10.0.0.6", "5.6.7.1"]),
        ("2a05:d000::1", vec!["2a05:d000::1"]),
    ] {
        assert_eq!(ends(&[ip(text)]), expected.into_iter().map(ip).collect::<Vec<_>>(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_mapped_address_is_judged_as_the_address_itself(bits in any::<u32>(), local in any::<bool>()) {
        let v4 = Ipv4Addr::from(bits);
        let plain = judge(v4.into(), &Addresses::Public, local, &[]);
        let mapped = judge(v4.to_ipv6_mapped().into(), &Addresses::Public, local, &[]);
        prop_assert_eq!(plain, mapped);
    }

    #[test]
    fn an_address_that_can_never_be_granted_is_never_allowed(bits in any::<u128>(), own in any::<u32>()) {
        let address = IpAddr::V6(Ipv6Addr::from(bits));
        let everything = cidrs(&["0.0.0.0/0", "::/0"]);
        let verdict = judge(address, &everything, true, &[Ipv4Addr::from(own).into()]);
        prop_assert!(verdict.is_err() || never(address).is_none());
    }
}

#[test]
fn a_denial_that_addresses_can_change_says_where_to_list_the_address() {
    for (addresses, cause) in [
        (Addresses::Public, "10.0.0.5 is not a public address"),
        (cidrs(&["10.1.0.0/16"]), "10.0.0.5 is in none of the networks in `addresses`"),
    ] {
        let denial = judge(ip("10.0.0.5"), &addresses, false, &[]).unwrap_err();
        let remedy = "list \"10.0.0.5/32\", or the network of the cloud, in `addresses` of the grant or login, or, if a preset \
                      has it, in `addresses` of the entry in `presets`";
        assert_eq!(denial.to_string(), format!("{cause}; {remedy}"));
    }
    let metadata = judge(ip("169.254.169.254"), &Addresses::Public, false, &[]).unwrap_err();
    assert_eq!(metadata.to_string(), "169.254.169.254 is a link-local address, which no policy can grant");
}
