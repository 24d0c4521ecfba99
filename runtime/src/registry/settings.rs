//! The rules for settings documents: what a guest sees and may change, and the forms that the Agent
//! can decode. The functions do no IO.
//!
//! The Agent crashes on a disk hint that is neither a string nor an object of strings, so such hints
//! are refused here.

use crate::vault::{SecretKind, Vault};
use serde_json::{Map, Value};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::{Layer, Secret};

/// The reason why settings are not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsRefusal {
    #[error("{what} must be {shape}")]
    Shape { what: String, shape: &'static str },
    #[error(
        "only `disks` and `networks` can be changed, but `{0}` differs from what is stored; write it back as it was read"
    )]
    Differs(String),
    #[error("there is no network `{0}` in the stored settings, and none can be added; leave it out")]
    NetworkAdded(String),
    #[error(
        "network `{network}`: `{key}` was decided by the Director and cannot be changed; write it back as it was read"
    )]
    NetworkDecided { network: String, key: &'static str },
    #[error("network `{0}` cannot be removed; write back all networks")]
    NetworkRemoved(String),
    #[error("`disks` and `networks` have more than {MAX_VALUES} values together; write fewer")]
    TooManyValues,
}

impl SettingsRefusal {
    /// Returns the check that refused.
    pub fn check(&self) -> Check {
        match self {
            SettingsRefusal::Shape { .. } => Check::RegistryShapes,
            SettingsRefusal::Differs(_) => Check::RegistryChangeable,
            SettingsRefusal::TooManyValues => Check::RegistryValues,
            SettingsRefusal::NetworkAdded(_)
            | SettingsRefusal::NetworkDecided { .. }
            | SettingsRefusal::NetworkRemoved(_) => Check::NetworkDecided,
        }
    }
}

fn wrong_shape(what: &str, shape: &'static str) -> SettingsRefusal {
    SettingsRefusal::Shape { what: what.to_owned(), shape }
}

/// The keys that a guest may change.
const CHANGEABLE: [&str; 2] = ["disks", "networks"];

/// The most values in a part of settings. A guest gets a seal for each, and no VM needs so many.
pub(super) const MAX_VALUES: usize = 2_000;

/// The parts of settings that limits apply to, each alone: a guest that makes its part larger until
/// it reaches a limit must not learn anything about the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What a guest may change.
    OfGuest,
    /// Everything else, with the VM's secrets.
    Other,
}

impl Part {
    pub(super) const ALL: [Part; 2] = [Part::OfGuest, Part::Other];

    fn of(self, settings: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
        settings.iter().filter(move |(key, _)| CHANGEABLE.contains(&key.as_str()) == (self == Part::OfGuest))
    }
}

/// Returns the length of a part as JSON text.
pub(super) fn size(settings: &Map<String, Value>, part: Part) -> usize {
    part.of(settings).map(|(key, value)| key.len() + value.to_string().len() + r#"{"":,}"#.len()).sum()
}

/// Returns the number of values in a part, with objects and arrays.
pub(super) fn values(settings: &Map<String, Value>, part: Part) -> usize {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
            Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
            _ => 1,
        }
    }
    part.of(settings).map(|(_, value)| count(value)).sum()
}

/// Rejects settings that could not be read again, because a guest wrote too many values.
pub(super) fn check_values(settings: &Map<String, Value>) -> Result<(), SettingsRefusal> {
    let few = values(settings, Part::OfGuest) <= MAX_VALUES;
    if Check::RegistryValues.refuses(!few) { Err(SettingsRefusal::TooManyValues) } else { Ok(()) }
}

/// Returns the settings as a guest sees them, with seals instead of strings, numbers and booleans that may be
/// secrets. An empty string has a seal, too, so that a guest does not learn which values are set.
/// The seal of a value depends on the ID and the path, not on the value. No slot can take its name,
/// because the name of a property or capture has no colon.
pub(crate) fn seal_settings(id: &str, settings: &Map<String, Value>, vault: &Vault) -> Value {
    let fields = settings.iter().map(|(key, value)| {
        let plain = ["disks", "networks", "agent_id"].contains(&key.as_str());
        let shown = if Check::SealedRegistry.accepts(plain) { value.clone() } else { seal(id, value, key, vault) };
        (key.clone(), shown)
    });
    Value::Object(fields.collect())
}

fn seal(id: &str, value: &Value, path: &str, vault: &Vault) -> Value {
    match value {
        Value::String(_) if path == "vm.name" => value.clone(),
        // What is stored stays as it is: what the guest writes back is compared with what it saw.
        Value::Number(number) => seal(id, &Value::String(number.to_string()), path, vault),
        Value::Bool(is_set) => seal(id, &Value::String(is_set.to_string()), path, vault),
        Value::String(text) => {
            let (place, name) = (format!("registry {id} {path}"), format!("registry:{path}"));
            let seal = vault.seal_at(&place, SecretKind::FromServer, &name, Secret::new(text.as_str()), Layer::Call);
            Value::String(seal)
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| seal(id, item, &format!("{path}.{index}"), vault)).collect()
        }
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(key, value)| (key.clone(), seal(id, value, &format!("{path}.{key}"), vault)));
            Value::Object(fields.collect())
        }
        Value::Null => Value::Null,
    }
}

/// Returns `stored` with the guest's disks and networks. Parts that `given` does not have stay as
/// they are. `seen` holds the settings as the guest saw them.
pub(crate) fn apply_change(
    stored: &Map<String, Value>,
    seen: &Value,
    given: &Value,
) -> Result<Map<String, Value>, SettingsRefusal> {
    let given = given.as_object().ok_or_else(|| wrong_shape("settings", "a JSON object"))?;
    let mut settings = stored.clone();
    for (key, value) in given {
        if Check::RegistryChangeable.accepts(CHANGEABLE.contains(&key.as_str())) {
            settings.insert(key.clone(), value.clone());
        } else if seen.get(key) != Some(value) {
            return Err(SettingsRefusal::Differs(key.clone()));
        }
    }
    if let Some(disks) = given.get("disks") {
        Check::RegistryShapes.perform(|| check_disks(disks)).transpose()?;
    }
    if let Some(networks) = given.get("networks") {
        Check::RegistryShapes.perform(|| check_networks(networks)).transpose()?;
        Check::NetworkDecided.perform(|| check_decided(stored.get("networks"), networks)).transpose()?;
    }
    Ok(settings)
}

/// Adds a persistent disk.
pub(crate) fn attach(settings: &mut Map<String, Value>, disk: &str, hint: Value) {
    change_persistent(settings, |persistent| {
        persistent.insert(disk.to_owned(), hint);
    });
}

/// Removes a persistent disk.
pub(crate) fn detach(settings: &mut Map<String, Value>, disk: &str) {
    change_persistent(settings, |persistent| {
        persistent.shift_remove(disk);
    });
}

fn change_persistent(settings: &mut Map<String, Value>, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut disks = take_object(settings, "disks");
    let mut persistent = take_object(&mut disks, "persistent");
    change(&mut persistent);
    disks.insert("persistent".into(), Value::Object(persistent));
    settings.insert("disks".into(), Value::Object(disks));
}

/// Takes an object out of the fields. Null and other types, which old CPIs wrote, count as empty.
fn take_object(fields: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match fields.get_mut(key).map(Value::take) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn check_disks(disks: &Value) -> Result<(), SettingsRefusal> {
    let disks = disks.as_object().ok_or_else(|| wrong_shape("`disks`", "an object"))?;
    if disks.get("system").is_some_and(|system| !system.is_string() && !system.is_null()) {
        return Err(wrong_shape("`disks.system`", "a string"));
    }
    if let Some(ephemeral) = disks.get("ephemeral").filter(|ephemeral| !ephemeral.is_null()) {
        check_hint("`disks.ephemeral`", ephemeral)?;
    }
    match disks.get("persistent") {
        None | Some(Value::Null) => {}
        Some(Value::Object(persistent)) => {
            for (disk, hint) in persistent {
                check_hint(&format!("`disks.persistent.{disk}`"), hint)?;
            }
        }
        Some(_) => return Err(wrong_shape("`disks.persistent`", "an object")),
    }
    match disks.get("raw_ephemeral") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(raw)) if raw.iter().all(is_object_of_strings) => Ok(()),
        Some(_) => Err(wrong_shape("`disks.raw_ephemeral`", "an array of objects with string values")),
    }
}

fn check_hint(name: &str, hint: &Value) -> Result<(), SettingsRefusal> {
    if hint.is_string() || is_object_of_strings(hint) {
        return Ok(());
    }
    Err(wrong_shape(name, "a string or an object with string values, because the Agent reads nothing else"))
}

fn is_object_of_strings(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.values().all(Value::is_string))
}

fn check_networks(networks: &Value) -> Result<(), SettingsRefusal> {
    match networks.as_object() {
        Some(networks) if networks.values().all(Value::is_object) => Ok(()),
        _ => Err(wrong_shape("`networks`", "an object of objects")),
    }
}

/// Rejects changes of what the Director decided about networks, like `agent::networks`: a VM could
/// take the place of another.
fn check_decided(stored: Option<&Value>, given: &Value) -> Result<(), SettingsRefusal> {
    const DECIDED: [&str; 5] = ["type", "ip", "netmask", "gateway", "dns"];
    let known = |name: &str| stored.and_then(|stored| stored.get(name));
    for (name, network) in given.as_object().into_iter().flatten() {
        let Some(known) = known(name) else {
            return Err(SettingsRefusal::NetworkAdded(name.clone()));
        };
        let dynamic = known["type"] == "dynamic";
        let changed = DECIDED.iter().find(|key| known.get(key) != network.get(key) && (!dynamic || **key == "type"));
        if let Some(key) = changed {
            return Err(SettingsRefusal::NetworkDecided { network: name.clone(), key });
        }
    }
    match stored.and_then(Value::as_object).into_iter().flat_map(Map::keys).find(|name| given.get(name).is_none()) {
        Some(name) => Err(SettingsRefusal::NetworkRemoved(name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
