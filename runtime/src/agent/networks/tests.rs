use super::*;
use crate::agent::tests::spec;
use proptest::prelude::*;

fn on(name: &str) -> NetworkAddition {
    NetworkAddition { name: name.into(), ..NetworkAddition::default() }
}

fn text(value: &str) -> Option<String> {
    Some(value.into())
}

#[test]
fn values_that_the_cloud_decided_are_added_to_any_network() {
    for name in ["private", "cloud", "public"] {
        let addition = NetworkAddition {
            mac: text("FA-16-3E-00-00-0A"),
            use_dhcp: Some(true),
            preconfigured: Some(false),
            alias: text("eth0:1"),
            routes: text(r#"[{"destination": "10.1.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.9"}]"#),
            ..on(name)
        };
        let networks = with_additions(&spec().networks, &[addition]).unwrap();
        let mut expected = spec().networks;
        expected[name]["mac"] = json!("fa:16:3e:00:00:0a");
        expected[name]["routes"] =
            json!([{"destination": "10.1.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.9"}]);
        expected[name]["alias"] = json!("eth0:1");
        expected[name]["use_dhcp"] = json!(true);
        expected[name]["preconfigured"] = json!(false);
        assert_eq!(networks, expected);
    }
}

#[test]
fn addresses_are_added_to_dynamic_networks_only() {
    let with_addresses = |name: &str| NetworkAddition {
        ip: text("10.9.0.5"),
        netmask: text("255.255.0.0"),
        gateway: text("10.9.0.1"),
        dns: vec!["10.9.0.3".into(), "fd00::1".into()],
        ..on(name)
    };
    let networks = with_additions(&spec().networks, &[with_addresses("cloud")]).unwrap();
    let expected = json!({"type": "dynamic", "dns": ["10.9.0.3", "fd00::1"], "cloud_properties": {},
                          "ip": "10.9.0.5", "netmask": "255.255.0.0", "gateway": "10.9.0.1"});
    assert_eq!(networks["cloud"], expected);
    for name in ["private", "public"] {
        let error = with_additions(&spec().networks, &[with_addresses(name)]).unwrap_err();
        assert!(error.message.contains(&format!("network `{name}`: `ip` was chosen by the Director")), "{error}");
    }
    let same = NetworkAddition { ip: text("10.0.0.7"), dns: vec!["10.0.0.2".into()], ..on("private") };
    assert_eq!(with_additions(&spec().networks, &[same]), Ok(spec().networks));
    let gateway = NetworkAddition { gateway: text("198.51.100.1"), ..on("public") };
    assert!(with_additions(&spec().networks, &[gateway]).is_err(), "what the Director left out stays out");
}

#[test]
fn invalid_additions_are_refused() {
    for (additions, expected) in [
        (vec![on("nowhere")], "the call has no network `nowhere`"),
        (vec![on("cloud"), on("cloud")], "network `cloud` is given twice"),
        (vec![NetworkAddition { mac: text("fa:16:3e"), ..on("cloud") }], "`mac` must be six"),
        (vec![NetworkAddition { mac: text("fa:16:3e:00:00:0g"), ..on("cloud") }], "`mac` must be six"),
        (vec![NetworkAddition { ip: text("10.9.0"), ..on("cloud") }], "`ip` is not an IP address"),
        (vec![NetworkAddition { dns: vec!["ns.example".into()], ..on("cloud") }], "`dns` is not an IP address"),
        (vec![NetworkAddition { routes: text("{}"), ..on("cloud") }], "`routes` must be a JSON array"),
        (vec![NetworkAddition { routes: text("[[1]]"), ..on("cloud") }], "`routes` must be a JSON array"),
        (vec![NetworkAddition { routes: text(r#"[{"metric": 1}]"#), ..on("cloud") }], "`routes` must be a JSON array"),
    ] {
        let error = with_additions(&spec().networks, &additions).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
}

#[test]
fn name_servers_are_those_of_the_default_network_or_the_first_that_has_any() {
    for (networks, expected) in [
        (json!({}), None),
        (json!({"a": {"dns": []}, "b": {"dns": null}}), None),
        (json!({"a": {}, "b": {"dns": ["1.1.1.1"]}, "c": {"dns": ["2.2.2.2"]}}), Some(json!(["1.1.1.1"]))),
        (json!({"b": {"dns": ["1.1.1.1"]}, "c": {"dns": ["2.2.2.2"], "default": ["dns"]}}), Some(json!(["2.2.2.2"]))),
        (json!({"b": {"dns": ["1.1.1.1"]}, "c": {"default": ["dns"]}}), Some(json!(["1.1.1.1"]))),
    ] {
        assert_eq!(name_servers(networks.as_object().unwrap()), expected.as_ref(), "{networks}");
    }
}

proptest! {
    #[test]
    fn no_addition_changes_an_address_of_the_director(
        name in "private|public", ip in "\\PC{0,12}|10\\.0\\.0\\.[0-9]{1,2}", mac in "\\PC{0,20}", routes in "\\PC{0,20}",
    ) {
        let addition = NetworkAddition { ip: Some(ip), mac: Some(mac), routes: Some(routes), ..on(&name) };
        if let Ok(networks) = with_additions(&spec().networks, &[addition]) {
            for key in ["ip", "netmask", "gateway", "dns", "type"] {
                prop_assert_eq!(networks[&name].get(key).cloned(), spec().networks[&name].get(key).cloned());
            }
        }
    }
}
