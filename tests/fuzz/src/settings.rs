//! The settings of a registry: the guest sees seals in place of strings, and can change
//! only disks and networks.

use crate::input::{object, parts};
use serde_json::{Map, Value};
use wasm_cpi::fuzzing::Vault;
use wasm_cpi::fuzzing::{attach_and_detach, changed_settings, sealed_settings};

/// The input is the stored settings, and those that the guest writes.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    let stored = object(parts.first());
    let vault = Vault::new();
    let seen = sealed_settings(&stored, &vault);
    for (key, value) in &stored {
        match key.as_str() {
            "disks" | "networks" | "agent_id" => assert_eq!(seen[key], *value),
            _ => check_sealed(key, value, &seen[key], &vault),
        }
    }
    // Writing back what the guest saw changes nothing, if the settings are valid.
    if let Ok(same) = changed_settings(&stored, &seen, &seen) {
        assert_eq!(same, stored);
    }
    let given = parts.get(1).and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    if let Ok(changed) = changed_settings(&stored, &seen, &given) {
        check_changed(&stored, &seen, &given, &changed);
        let mut settings = changed.clone();
        attach_and_detach(&mut settings, "disk-fuzzed", Value::from("/dev/sdc"));
        assert!(settings["disks"]["persistent"].as_object().is_some_and(|disks| !disks.contains_key("disk-fuzzed")));
    }
}

fn check_sealed(path: &str, stored: &Value, seen: &Value, vault: &Vault) {
    match (stored, seen) {
        (Value::String(text), Value::String(seal)) if path == "vm.name" => assert_eq!(text, seal),
        (Value::String(text), Value::String(seal)) => {
            let sealed = vault.open(seal).unwrap_or_else(|| panic!("{path} is not a seal"));
            assert_eq!(sealed.secret.reveal(), text);
            assert_ne!(text, seal);
        }
        (Value::Number(number), Value::String(seal)) => {
            let sealed = vault.open(seal).unwrap_or_else(|| panic!("{path} is not a seal"));
            assert_eq!(sealed.secret.reveal(), number.to_string());
        }
        (Value::Bool(is_set), Value::String(seal)) => {
            let sealed = vault.open(seal).unwrap_or_else(|| panic!("{path} is not a seal"));
            assert_eq!(sealed.secret.reveal(), is_set.to_string());
        }
        (Value::Array(stored), Value::Array(seen)) => {
            assert_eq!(stored.len(), seen.len());
            stored.iter().zip(seen).for_each(|(stored, seen)| check_sealed("item", stored, seen, vault));
        }
        (Value::Object(stored), Value::Object(seen)) => {
            assert_eq!(stored.len(), seen.len());
            stored.iter().for_each(|(key, stored)| check_sealed(&format!("{path}.{key}"), stored, &seen[key], vault));
        }
        (stored, seen) => assert_eq!(stored, seen),
    }
}

fn check_changed(stored: &Map<String, Value>, seen: &Value, given: &Value, changed: &Map<String, Value>) {
    let others =
        given.as_object().into_iter().flatten().filter(|(key, _)| !["disks", "networks"].contains(&key.as_str()));
    for (key, value) in others {
        assert_eq!(seen.get(key), Some(value), "the guest wrote `{key}`, which must be refused");
    }
    let both = stored.keys().chain(changed.keys());
    for key in both.filter(|key| !["disks", "networks"].contains(&key.as_str())) {
        assert_eq!(stored.get(key), changed.get(key), "the guest changed `{key}`");
    }
    for key in ["disks", "networks"] {
        assert_eq!(changed.get(key), given.get(key).or_else(|| stored.get(key)));
    }
    let Some(disks) = given.get("disks") else { return };
    let hints = disks["persistent"].as_object().into_iter().flat_map(|disks| disks.values());
    for hint in hints.chain(disks.get("ephemeral").filter(|hint| !hint.is_null())) {
        let strings = hint.as_object().is_some_and(|fields| fields.values().all(Value::is_string));
        assert!(hint.is_string() || strings, "no Agent can read {hint}");
    }
}
