use super::settings::{build, encode, registry_user_data, registryless_user_data};
use super::*;
use crate::net::response::agent_settings::MARKER;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use proptest::prelude::*;
use serde_json::json;

pub(super) fn config() -> AgentConfig {
    serde_json::from_value(json!({
        "mbus": "nats://u:mbus-hunter2@10.0.0.6:4222", "ntp": ["0.pool.example"],
        "blobstore": {"provider": "dav", "options": {"endpoint": "http://10.0.0.6:25250", "password": "blob-hunter2"}},
    }))
    .unwrap()
}

pub(super) fn spec() -> VmSpec {
    let networks = json!({
        "private": {"type": "manual", "ip": "10.0.0.7", "netmask": "255.255.255.0", "prefix": "32", "gateway": "10.0.0.1",
                    "dns": ["10.0.0.2"], "default": ["dns", "gateway"], "cloud_properties": {"net": "n"}, "nic_group": "1"},
        "cloud": {"type": "dynamic", "dns": ["10.9.0.2"], "cloud_properties": {}},
        "public": {"type": "vip", "ip": "198.51.100.7", "cloud_properties": {}},
    });
    let env = json!({"bosh": {"password": "env-hunter2-hash", "tags": {"deployment": "a-long-name-of-one"}}, "other": [1, null]});
    VmSpec { agent_id: "agent-1".into(), networks: networks.as_object().unwrap().clone(), env }
}

pub(super) fn additions() -> Additions {
    Additions {
        vm_name: "vm-1".into(),
        system_disk: Some("/dev/sda".into()),
        ephemeral_disk: Some(DiskHint::Fields(vec![("path".into(), "/dev/sdb".into())])),
        ..Additions::default()
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The mode is registry-less if and only if Director, CPI and stemcell all have version 2. The
/// request's api_version is the lower one of the Director's and the CPI's.
#[test]
fn the_mode_follows_the_versions_of_the_v2_contract() {
    for (director, cpi, stemcell, registryless) in [
        (1, 1, 1, false),
        (1, 1, 2, false),
        (1, 2, 2, false),
        (2, 2, 2, true),
        (1, 2, 1, false),
        (2, 2, 1, false),
        (2, 1, 1, false),
        (2, 1, 2, false),
    ] {
        let expected = if registryless { Mode::Registryless } else { Mode::Registry };
        assert_eq!(mode(director.min(cpi), Some(stemcell)), expected, "{director} {cpi} {stemcell}");
    }
    for (api_version, stemcell, expected) in [
        (2, None, Mode::Registry),
        (3, None, Mode::Registry),
        (3, Some(3), Mode::Registryless),
        (3, Some(0), Mode::Registry),
        (0, Some(2), Mode::Registry),
    ] {
        assert_eq!(mode(api_version, stemcell), expected);
    }
}

#[test]
fn a_missing_registry_is_reported_before_anything_is_created() {
    for method in ["create_vm", "delete_vm", "attach_disk", "detach_disk"] {
        let failure = Mode::Registry.check(method, false).unwrap_err();
        assert!(
            failure.who == crate::failure::Who::Config && failure.message.contains("`registry` is missing"),
            "{failure}"
        );
        assert!(Mode::Registry.check(method, true).is_ok() && Mode::Registryless.check(method, false).is_ok());
    }
    assert!(Mode::Registry.check("create_disk", false).is_ok());
}

#[test]
fn settings_have_the_form_that_the_agent_decodes() {
    let additions = Additions {
        raw_ephemeral_disks: vec![
            DiskHint::Text("/dev/sdc".into()),
            DiskHint::Fields(vec![("volume_id".into(), "3".into()), ("host_device_id".into(), "4".into())]),
        ],
        ..additions()
    };
    let expected = json!({
        "agent_id": "agent-1",
        "vm": {"name": "vm-1"},
        "networks": spec().networks,
        "disks": {"system": "/dev/sda", "ephemeral": {"path": "/dev/sdb"}, "persistent": {},
                  "raw_ephemeral": [{"path": "/dev/sdc"}, {"VolumeID": "3", "HostDeviceID": "4"}]},
        "env": spec().env,
        "mbus": "nats://u:mbus-hunter2@10.0.0.6:4222",
        "ntp": ["0.pool.example"],
        "blobstore": {"provider": "dav", "options": {"endpoint": "http://10.0.0.6:25250", "password": "blob-hunter2"}},
    });
    let settings = build(&config(), &spec(), &additions).unwrap();
    assert_eq!(Value::Object(settings.clone()), expected);
    assert_eq!(registryless_user_data(&settings)["dns"], json!({"nameserver": ["10.0.0.2"]}));
}

/// Returns the object without the marker, which is its first and its last key.
fn unmarked(data: Map<String, Value>) -> Value {
    let keys: Vec<&String> = data.keys().collect();
    for key in [keys[0], keys[keys.len() - 1]] {
        assert!(key.contains(MARKER), "{keys:?}");
    }
    Value::Object(data.into_iter().filter(|(key, _)| !key.contains(MARKER)).collect())
}

#[test]
fn settings_that_are_not_configured_are_omitted() {
    let spec = VmSpec { agent_id: "a".into(), networks: Map::new(), env: json!({}) };
    let settings = build(&AgentConfig::default(), &spec, &Additions::default()).unwrap();
    let expected = json!({
        "agent_id": "a", "vm": {"name": ""}, "networks": {}, "disks": {"persistent": {}}, "env": {}, "ntp": [],
    });
    assert_eq!(unmarked(registryless_user_data(&settings)), expected);
}

#[test]
fn user_data_for_a_registry_holds_only_its_address_and_the_networks() {
    let settings = build(&config(), &spec(), &additions()).unwrap();
    let data = registry_user_data(json!({"endpoint": "http://h"}), &settings, "vm-1");
    let expected = json!({
        "dns": {"nameserver": ["10.0.0.2"]}, "networks": spec().networks,
        "registry": {"endpoint": "http://h"}, "server": {"name": "vm-1"},
    });
    assert_eq!(unmarked(data), expected);
}

#[test]
fn disk_hints_are_strings_or_objects_of_strings() {
    let fields =
        |fields: &[(&str, &str)]| DiskHint::Fields(fields.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
    assert_eq!(DiskHint::Text("3".into()).to_json(), Ok(json!("3")));
    assert_eq!(
        fields(&[("lun", "0"), ("host_device_id", "x")]).to_json(),
        Ok(json!({"lun": "0", "host_device_id": "x"}))
    );
    for bad in [DiskHint::Text(String::new()), fields(&[]), fields(&[("", "x")]), fields(&[("a", "1"), ("a", "2")])] {
        assert!(bad.to_json().is_err() && bad.to_raw_json().is_err(), "{bad:?}");
    }
}

#[test]
fn encodings_are_applied_in_order() {
    let data = object(json!({"a": "ÿ?>"}));
    let (plain, quoted) = (data_text(&data, &[]), data_text(&data, &[Encoding::JsonString]));
    for (encodings, expected) in [
        (vec![], plain.clone()),
        (vec![Encoding::Base64], BASE64_STANDARD.encode(&plain)),
        (vec![Encoding::Base64Url], BASE64_URL_SAFE.encode(&plain)),
        (vec![Encoding::JsonString, Encoding::Base64], BASE64_STANDARD.encode(json!(quoted).to_string())),
        (vec![Encoding::Base64, Encoding::JsonString], format!("\"{}\"", BASE64_STANDARD.encode(&plain))),
    ] {
        assert_eq!(encode(data.clone(), data.clone(), &encodings).pop().unwrap(), expected, "{encodings:?}");
    }
}

#[test]
fn what_a_guest_adds_is_no_syntax_of_a_form_or_of_markup() {
    let hostile = "x&a=1;b=%26+<i>'\"\\?#\n\u{e9}";
    let given = Additions {
        vm_name: hostile.into(),
        system_disk: Some(hostile.into()),
        ephemeral_disk: Some(DiskHint::Fields(vec![(hostile.into(), hostile.into())])),
        raw_ephemeral_disks: vec![DiskHint::Text(hostile.into())],
        networks: vec![NetworkAddition {
            name: spec().networks.keys().next().unwrap().clone(),
            alias: Some(hostile.into()),
            routes: Some(json!([{hostile: hostile}]).to_string()),
            ..NetworkAddition::default()
        }],
        encodings: Vec::new(),
    };
    let settings = build(&config(), &spec(), &given).unwrap();
    let base = build(&config(), &spec(), &Additions::default()).unwrap();
    let of_registry = |full: &Map<String, Value>, name: &str| registry_user_data(json!({}), full, name);
    for (data, base) in [
        (registryless_user_data(&settings), registryless_user_data(&base)),
        (of_registry(&settings, hostile), of_registry(&base, "")),
    ] {
        let text = encode(data.clone(), base.clone(), &[]).pop().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Value::Object(data));
        let plain = encode(base.clone(), base, &[]).pop().unwrap();
        for syntax in ["&", "=", ";", "%", "+", "<", ">", "'", "?", "#", "\\\"", "\\\\", "\\n"] {
            let count = |text: &str| text.matches(syntax).count();
            assert_eq!(count(&text), count(&plain), "{syntax} in {text}");
        }
        assert_eq!(text.len(), plain.len());
    }
}

/// Returns the settings as they are written: in ASCII, so that every place can hold them.
fn data_text(data: &Map<String, Value>, encodings: &[Encoding]) -> String {
    let text = serde_json::to_string(data).unwrap().replace('ÿ', "\\u00ff");
    let length = size::padded_length(&text, encodings);
    size::pad(text, length, encodings)
}

#[test]
fn short_passwords_numbers_and_tokens_in_urls_are_secrets_of_the_settings() {
    let config: AgentConfig = serde_json::from_value(json!({
        "mbus": "nats://s3cr3t-t0ken-of-nats@10.0.0.6:4222",
        "blobstore": {"provider": "dav", "options": {"endpoint": "http://blob-t0ken@10.0.0.6", "port": 25250,
                                                     "password": 998_877_665_544_332_211_u64}},
    }))
    .unwrap();
    let env = json!({"bosh": {"password": "hunter2x9zz", "pin": {"secret": 123_456}, "remove_dev_tools": true,
                              "keep_root_password": false, "parallel": 12, "tags": {"password": "visible"}}, "size": "small"});
    let secrets = secrets::find(&config, Some(&VmSpec { env, ..spec() }));
    let known: Vec<(&str, &str)> = secrets.iter().map(|(name, secret)| (name.as_str(), secret.reveal())).collect();
    let expected = [
        ("agent.mbus", "nats://s3cr3t-t0ken-of-nats@10.0.0.6:4222"),
        ("agent.blobstore.options.endpoint", "http://blob-t0ken@10.0.0.6"),
        ("agent.blobstore.options.password", "998877665544332211"),
        ("env.bosh.password", "hunter2x9zz"),
        ("env.bosh.pin.secret", "123456"),
    ];
    assert_eq!(known, expected);
    let vault = crate::vault::Vault::new();
    for (name, secret) in secrets {
        vault.register(&name, secret);
    }
    let said =
        "bad root password hunter2x9zz, 123456, bus s3cr3t-t0ken-of-nats@10.0.0.6, blob 998877665544332211, blob-t0ken";
    let shown = "bad root password <redacted>, <redacted>, bus <redacted>@10.0.0.6, blob <redacted>, <redacted>";
    assert_eq!(vault.redact(said), shown);
    assert!(vault.leak_in(b"998877665544332211").unwrap().is_some());
    assert!(vault.leak_in(b"s3cr3t-t0ken-of-nats").unwrap().is_some());
}

#[test]
fn secrets_of_the_settings_are_found_and_locations_are_not_secrets() {
    let secrets = secrets::find(&config(), Some(&spec()));
    let known: Vec<(&str, &str)> = secrets.iter().map(|(name, secret)| (name.as_str(), secret.reveal())).collect();
    let expected = [
        ("agent.mbus", "nats://u:mbus-hunter2@10.0.0.6:4222"),
        ("agent.blobstore.options.password", "blob-hunter2"),
        ("env.bosh.password", "env-hunter2-hash"),
    ];
    assert_eq!(known, expected);
    // A location with a password in its URL is a secret.
    let options = json!({"endpoint": "https://u:hunter2@h", "host": "h", "region": "r"});
    let config: AgentConfig = serde_json::from_value(json!({"blobstore": {"options": options}})).unwrap();
    let known: Vec<String> = secrets::find(&config, None).into_iter().map(|(name, _)| name).collect();
    assert_eq!(known, ["agent.blobstore.options.endpoint"]);
}

proptest! {
    #[test]
    fn encoded_settings_decode_to_the_same_settings(text in "\\PC{0,40}", number in any::<i64>()) {
        let data = object(json!({"env": {"a": text, "b": number}}));
        let encoded = encode(data.clone(), data.clone(), &[Encoding::JsonString, Encoding::Base64Url]);
        let literal: String = serde_json::from_slice(&BASE64_URL_SAFE.decode(encoded.last().unwrap()).unwrap()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&literal).unwrap(), Value::Object(data));
    }
}
