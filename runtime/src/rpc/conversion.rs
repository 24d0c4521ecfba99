//! Converts between the Director's JSON and the guest's types.
//!
//! No key that a caller sent is lost: the keys of a network that the contract does not name are
//! passed in `extra`.

use crate::agent;
use crate::bindings::bosh::cpi::types::{DiskHint, Network};
use crate::bindings::exports::bosh::cpi::networks::NetworkSpec;
use crate::failure::Failure;
use crate::rpc::arguments::Object;
use serde_json::{Value, json};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::invisible::is_invisible;
use wasm_cpi_policy::strict_json;

/// The deepest nesting of JSON from a guest. Deeper JSON is rejected before it is parsed.
const GUEST_JSON_DEPTH: usize = 120;

pub fn networks_for_guest(networks: &Object) -> Vec<Network> {
    networks.iter().map(|(name, fields)| network_for_guest(name, fields)).collect()
}

fn network_for_guest(name: &str, fields: &Value) -> Network {
    let mut extra = fields.as_object().cloned().unwrap_or_default();
    let mut text = |key: &str| match extra.get(key) {
        Some(Value::String(_)) => match extra.shift_remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        // A value of another type stays in `extra`, so that it is not lost.
        _ => None,
    };
    let (kind, ip, netmask) = (text("type"), text("ip"), text("netmask"));
    let (prefix, gateway) = (text("prefix"), text("gateway"));
    let mut texts = |key: &str| {
        let list = extra.get(key).and_then(Value::as_array)?;
        // An empty list stays in `extra`, because it means something else than an absent one.
        let texts: Option<Vec<String>> = list.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        let texts = texts.filter(|texts| !texts.is_empty())?;
        extra.shift_remove(key);
        Some(texts)
    };
    let (dns, default) = (texts("dns").unwrap_or_default(), texts("default").unwrap_or_default());
    let cloud_properties = match extra.get("cloud_properties") {
        Some(Value::Object(_)) => extra.shift_remove("cloud_properties").unwrap_or_default(),
        _ => json!({}),
    };
    Network {
        name: name.to_owned(),
        kind: kind.unwrap_or_default(),
        ip,
        netmask,
        prefix,
        gateway,
        dns,
        default,
        cloud_properties: cloud_properties.to_string(),
        extra: Value::Object(extra).to_string(),
    }
}

pub fn networks_for_caller(networks: Vec<Network>) -> Result<Value, Failure> {
    let mut object = Object::new();
    for network in networks {
        let mut fields = Object::new();
        let kind = Some(network.kind).filter(|kind| !kind.is_empty());
        for (key, text) in [
            ("type", kind),
            ("ip", network.ip),
            ("netmask", network.netmask),
            ("prefix", network.prefix),
            ("gateway", network.gateway),
        ] {
            if let Some(text) = text {
                fields.insert(key.into(), text.into());
            }
        }
        for (key, list) in [("dns", network.dns), ("default", network.default)] {
            if !list.is_empty() {
                fields.insert(key.into(), list.into());
            }
        }
        let cloud_properties = object_from_guest(&network.cloud_properties, "a network's cloud_properties")?;
        fields.insert("cloud_properties".into(), Value::Object(cloud_properties));
        for (key, value) in object_from_guest(&network.extra, "a network's extra")? {
            fields.entry(key).or_insert(value);
        }
        Check::NetworkTwice.ensure(!object.contains_key(&network.name), || {
            Failure::guest(format!("returned the network `{}` twice; this is a bug in the guest", network.name))
        })?;
        object.insert(network.name, Value::Object(fields));
    }
    Ok(Value::Object(object))
}

/// Reads the argument of `create_network`.
pub fn network_spec(spec: &Object) -> Result<NetworkSpec, Failure> {
    let text = |key: &str| match spec.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Failure::request(format!("`create_network`: `{key}` must be a string"))),
    };
    let cloud_properties = match spec.get("cloud_properties") {
        None | Some(Value::Null) => json!({}),
        Some(object @ Value::Object(_)) => object.clone(),
        Some(_) => return Err(Failure::request("`create_network`: `cloud_properties` must be an object")),
    };
    // The Director sends a number; a manifest may have made it a string.
    let netmask_bits = match spec.get("netmask_bits") {
        None | Some(Value::Null) => None,
        Some(bits) => Some(
            bits.as_u64()
                .or_else(|| bits.as_str()?.parse().ok())
                .and_then(|bits| u32::try_from(bits).ok())
                .ok_or_else(|| Failure::request("`create_network`: `netmask_bits` must be a whole number"))?,
        ),
    };
    Ok(NetworkSpec {
        kind: text("type")?.unwrap_or_default(),
        cloud_properties: cloud_properties.to_string(),
        range: text("range")?,
        gateway: text("gateway")?,
        netmask_bits,
    })
}

/// Parses a JSON object that a guest returned as text.
pub fn object_from_guest(text: &str, what: &str) -> Result<Object, Failure> {
    match strict_json::parse(text, GUEST_JSON_DEPTH) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => {
            Err(Failure::guest(format!("returned {what} that is JSON but not an object; this is a bug in the guest")))
        }
        Err(error) => {
            let failure =
                Failure::guest(format!("returned {what} that is not JSON ({error}); this is a bug in the guest"));
            Err(Failure { check: error.check(), ..failure })
        }
    }
}

/// Rejects a cloud ID that is empty or has control characters.
pub fn cid_from_guest(cid: String) -> Result<String, Failure> {
    Check::CidForm
        .ensure(!cid.is_empty(), || Failure::guest("returned an empty cloud ID; this is a bug in the guest"))?;
    // The Director's database rejects NUL, and logs and terminals show IDs.
    Check::CidForm.ensure(is_plain(&cid), || {
        Failure::guest("returned a cloud ID with control characters in it; this is a bug in the guest")
    })?;
    Ok(cid)
}

pub fn metadata_for_guest(metadata: &Object) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    metadata.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// Returns a disk hint as the Agent reads it: all values are strings that are not empty.
pub fn hint_for_caller(hint: DiskHint) -> Result<Value, Failure> {
    let hint = agent::DiskHint::from(hint).to_json().map_err(|what| {
        Failure::guest(format!("returned a disk hint that no Agent can use: {what}; this is a bug in the guest"))
    })?;
    Check::HintForm.ensure(texts_are_plain(&hint), || {
        Failure::guest("returned a disk hint with control characters in it; this is a bug in the guest")
    })?;
    Ok(hint)
}

fn texts_are_plain(hint: &Value) -> bool {
    match hint {
        Value::String(text) => is_plain(text),
        Value::Object(fields) => fields.iter().all(|(key, value)| is_plain(key) && value.as_str().is_none_or(is_plain)),
        _ => true,
    }
}

/// Returns true if the text has no control or invisible characters.
fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || is_invisible(c))
}

/// Returns the part of a VM's `env` that the guest may see: what the Director itself logs.
pub fn visible_env(env: &Object) -> Value {
    Check::SealedEnv.perform(|| logged_env(env)).unwrap_or_else(|| Value::Object(env.clone()))
}

fn logged_env(env: &Object) -> Value {
    let Some(Value::Object(bosh)) = env.get("bosh") else { return json!({}) };
    let visible: Object =
        agent::VISIBLE_ENV.into_iter().filter_map(|key| Some((key.to_owned(), bosh.get(key)?.clone()))).collect();
    if visible.is_empty() { json!({}) } else { json!({"bosh": visible}) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn networks_survive_the_round_trip() {
        let networks = json!({
            "z": {"type": "manual", "ip": "10.0.0.6", "prefix": "32", "netmask": "255.255.255.255", "gateway": "10.0.0.1",
                  "dns": ["10.0.0.2"], "default": ["dns", "gateway"], "cloud_properties": {"net_id": "n"}, "nic_group": "1", "mac": "aa"},
            "a": {"type": "dynamic", "cloud_properties": {}, "prefix": 32, "resolved": true},
        });
        let guest = networks_for_guest(networks.as_object().unwrap());
        assert_eq!(guest.iter().map(|network| network.name.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        assert_eq!(guest[0].extra, r#"{"nic_group":"1","mac":"aa"}"#);
        assert_eq!(networks_for_caller(guest).unwrap(), networks);
    }

    #[test]
    fn lists_that_are_empty_or_not_of_strings_survive_the_round_trip() {
        let networks = json!({"n": {"type": "manual", "dns": ["8.8.8.8", 5], "default": [], "cloud_properties": {}}});
        assert_eq!(networks_for_caller(networks_for_guest(networks.as_object().unwrap())).unwrap(), networks);
    }

    #[test]
    fn a_guest_sees_only_the_part_of_env_that_the_director_logs() {
        let env = json!({"bosh": {"group": "g", "groups": ["a"], "tags": {"t": "x"}, "password": "p", "mbus": {}}, "other": 1});
        assert_eq!(
            visible_env(env.as_object().unwrap()),
            json!({"bosh": {"group": "g", "groups": ["a"], "tags": {"t": "x"}}})
        );
        assert_eq!(visible_env(json!({"bosh": {"password": "p"}}).as_object().unwrap()), json!({}));
    }

    #[test]
    fn disk_hints_and_cloud_ids_that_clients_cannot_handle_are_rejected() {
        assert!(hint_for_caller(DiskHint::Text(String::new())).is_err());
        assert!(hint_for_caller(DiskHint::Fields(vec![])).is_err());
        assert_eq!(hint_for_caller(DiskHint::Fields(vec![("lun".into(), "0".into())])).unwrap(), json!({"lun": "0"}));
        let twice = vec![("path".into(), "a".into()), ("path".into(), "b".into())];
        assert!(hint_for_caller(DiskHint::Fields(twice)).is_err());
        assert!(hint_for_caller(DiskHint::Text("/dev/\n".into())).is_err());
        for cid in ["", "vm-\0", "vm-\u{1b}[2J", "vm-\u{202e}"] {
            assert!(cid_from_guest(cid.into()).is_err());
        }
    }

    #[test]
    fn a_network_that_is_returned_twice_is_rejected() {
        let networks = json!({"n": {"type": "manual", "cloud_properties": {}}});
        let mut guest = networks_for_guest(networks.as_object().unwrap());
        guest.extend(guest.clone());
        assert!(networks_for_caller(guest).unwrap_err().message.contains("`n` twice"));
    }

    #[test]
    fn metadata_values_become_text() {
        let metadata = json!({"a": "x", "index": 3, "b": true, "n": null});
        let texts = metadata_for_guest(metadata.as_object().unwrap());
        let texts: Vec<_> = texts.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(texts, ["a=x", "index=3", "b=true", "n=null"]);
    }

    proptest! {
        #[test]
        fn any_network_survives_the_round_trip(kind in "[a-z]{1,8}", ip in proptest::option::of("[0-9.]{1,9}"), key in "[a-z]{3,9}_x", dns in proptest::collection::vec("[0-9.]{1,9}", 1..3)) {
            let mut network = json!({"type": kind, "cloud_properties": {"k": [1]}, "dns": dns, key: {"deep": [null]}});
            if let Some(ip) = ip {
                network["ip"] = json!(ip);
            }
            let networks = json!({"n": network});
            let back = networks_for_caller(networks_for_guest(networks.as_object().unwrap())).unwrap();
            prop_assert_eq!(back, networks);
        }
    }
}
