use super::*;
use proptest::prelude::*;
use serde_json::json;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn stored() -> Map<String, Value> {
    object(json!({
        "agent_id": "agent", "vm": {"name": "vm-1"}, "mbus": "nats://u:p@h", "ntp": ["one", ""],
        "disks": {"system": "/dev/sda", "persistent": {"d": "/dev/sdb"}}, "networks": {"n": {"ip": "10.0.0.1"}},
        "env": {"bosh": {"password": "hash", "swap": 5, "on": true, "none": null}},
    }))
}

#[test]
fn values_that_may_be_secrets_are_sealed_and_others_are_not() {
    let vault = Vault::new();
    let seen = seal_settings("vm", &stored(), &vault);
    let sealed = [
        ("/mbus", "nats://u:p@h"),
        ("/ntp/0", "one"),
        ("/ntp/1", ""),
        ("/env/bosh/password", "hash"),
        ("/env/bosh/swap", "5"),
        ("/env/bosh/on", "true"),
    ];
    for (pointer, secret) in sealed {
        let seal = seen.pointer(pointer).unwrap().as_str().unwrap();
        let opened = vault.open(seal).unwrap();
        assert_eq!((opened.secret.reveal(), opened.layer), (secret, Layer::Call), "{pointer}");
    }
    assert_eq!(
        vault.open(seen["env"]["bosh"]["password"].as_str().unwrap()).unwrap().name,
        "registry:env.bosh.password"
    );
    for key in ["agent_id", "vm", "disks", "networks"] {
        assert_eq!(seen[key], stored()[key], "{key}");
    }
    assert_eq!(seen["env"]["bosh"]["none"], json!(null));
}

#[test]
fn only_disks_and_networks_can_be_changed() {
    let vault = Vault::new();
    let seen = seal_settings("vm", &stored(), &vault);
    let mut given = seen.clone();
    given["disks"]["persistent"] = json!({"e": {"path": "/dev/sdc"}});
    given["networks"]["n"]["mac"] = json!("aa:bb:cc:dd:ee:ff");
    let mut expected = stored();
    for key in ["disks", "networks"] {
        expected.insert(key.into(), given[key].clone());
    }
    assert_eq!(apply_change(&stored(), &seen, &given), Ok(expected));
    assert_eq!(apply_change(&stored(), &seen, &json!({})), Ok(stored()));

    for (pointer, value) in [("/mbus", json!("nats://evil")), ("/env/bosh/swap", json!(6)), ("/agent_id", json!("b"))] {
        let mut given = seen.clone();
        *given.pointer_mut(pointer).unwrap() = value;
        let error = apply_change(&stored(), &seen, &given).unwrap_err();
        assert!(matches!(error, SettingsRefusal::Differs(_)), "{error}");
    }
    for (networks, said) in [
        (json!({}), "cannot be removed"),
        (json!({"n": {"type": "manual", "ip": "10.0.0.66"}}), "was decided by the Director"),
        (json!({"n": seen["networks"]["n"], "more": {}}), "none can be added"),
    ] {
        let error = apply_change(&stored(), &seen, &json!({"networks": networks})).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let added = apply_change(&stored(), &seen, &json!({"blobstore": {}}));
    assert_eq!(added, Err(SettingsRefusal::Differs("blobstore".into())));
    assert!(apply_change(&stored(), &seen, &json!([])).is_err());
}

#[test]
fn settings_that_the_agent_cannot_read_are_refused() {
    for (given, expected) in [
        (json!({"disks": []}), "`disks` must be an object"),
        (json!({"disks": {"system": {"path": "/dev/sda"}}}), "`disks.system` must be a string"),
        (json!({"disks": {"ephemeral": 1}}), "`disks.ephemeral` must be"),
        (json!({"disks": {"persistent": {"d": {"lun": 0}}}}), "`disks.persistent.d` must be"),
        (json!({"disks": {"persistent": []}}), "`disks.persistent` must be"),
        (json!({"disks": {"raw_ephemeral": ["/dev/sdb"]}}), "`disks.raw_ephemeral` must be"),
        (json!({"networks": {"a": 1}}), "`networks` must be"),
    ] {
        let error = apply_change(&Map::new(), &json!({}), &given).unwrap_err().to_string();
        assert!(error.contains(expected), "{given}: {error}");
    }
    let fine =
        json!({"disks": {"system": null, "ephemeral": null, "persistent": null, "raw_ephemeral": [{"path": "/x"}]}});
    assert!(apply_change(&Map::new(), &json!({}), &fine).is_ok());
}

#[test]
fn disks_can_be_attached_and_detached_whatever_was_stored_before() {
    for before in [json!({}), json!({"disks": null}), json!({"disks": {"persistent": null}}), json!({"disks": []})] {
        let mut settings = object(before);
        attach(&mut settings, "d", json!("/dev/sdb"));
        attach(&mut settings, "e", json!({"path": "/dev/sdc"}));
        detach(&mut settings, "d");
        detach(&mut settings, "unknown");
        assert_eq!(settings, object(json!({"disks": {"persistent": {"e": {"path": "/dev/sdc"}}}})));
    }
    let mut settings = stored();
    detach(&mut settings, "d");
    assert_eq!(settings["disks"], json!({"system": "/dev/sda", "persistent": {}}));
}

proptest! {
    #[test]
    fn sealed_settings_can_be_written_back_unchanged(secret in "\\PC{0,20}", number in any::<i64>(), on in any::<bool>()) {
        let vault = Vault::new();
        let stored = object(json!({"a": [{"b": secret, "c": number, "d": on}], "disks": {"persistent": {"d": secret}}}));
        let seen = seal_settings("vm", &stored, &vault);
        prop_assert_eq!(apply_change(&stored, &seen, &seen), Ok(stored));
    }
}
