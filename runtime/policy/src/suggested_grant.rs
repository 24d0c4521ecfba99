//! Completes a suggested grant with settings that the operator chose for the same origin.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::grant::Grant;
use super::needs::{NeedOrigin, ResolvedNeed, Restriction};
use super::origin::OriginSpec;
use super::path::PathPattern;
use super::slots::{AGENT, Slot};
use crate::destination::Scheme;

/// Adds to a suggested grant what other grants of the same origin have, and the slots of the need.
pub(super) fn complete(
    mut grant: Value,
    by: &ResolvedNeed,
    grants: &[Arc<Grant>],
    same_origin: &dyn Fn(&Grant) -> bool,
    same_host: &dyn Fn(&Grant) -> bool,
) -> Value {
    let exact = |grant: &&Arc<Grant>| !grant.origin.is_wildcard();
    let siblings: Vec<&Arc<Grant>> = grants.iter().filter(exact).filter(|grant| same_origin(grant)).collect();
    let sibling = siblings.iter().find(|grant| grant.auth.is_some()).or(siblings.first()).copied();
    let neighbour = sibling.or_else(|| grants.iter().filter(exact).find(|grant| same_host(grant)));
    let settings = neighbour.into_iter().flat_map(|grant| &grant.shared.settings);
    let of_host = ["addresses", "tls"];
    for (key, value) in settings.filter(|(key, _)| sibling.is_some() || of_host.contains(&key.as_str())) {
        grant[key.as_str()] = value.clone();
    }
    let plain = grant["to"].as_str().is_some_and(|to| to.starts_with("http://"))
        || matches!(&by.origin, NeedOrigin::Known(origin) if origin.scheme == Scheme::Http);
    let secrets_may_go = grant.get("plain_http") == Some(&Value::Bool(true)) || !plain;
    let copied =
        siblings.iter().filter(|sibling| grant["to"] == sibling.shared.to.as_str()).flat_map(|s| &s.shared.slots);
    let slots: Vec<Value> = copied.filter(|slot| is_within(slot, &grant)).cloned().collect();
    let declared: Vec<Value> = match &by.need.slots {
        Restriction::Only(declared) if secrets_may_go => {
            let known = |slot: &&Slot| slot.takes.iter().all(|name| is_known(name, grants));
            declared.iter().filter(known).map(slot_json).filter(|slot| is_within(slot, &grant)).collect()
        }
        _ => Vec::new(),
    };
    let mut all = slots;
    for slot in declared {
        let same = |copied: &Value, key: &str| copied[key] == slot[key];
        if !all.iter().any(|copied| ["place", "path", "operation"].iter().all(|key| same(copied, key))) {
            all.push(slot);
        }
    }
    if !all.is_empty() {
        grant["slots"] = Value::Array(all);
    }
    grant
}

/// Returns true if a slot, as it is written, is for requests of this grant.
fn is_within(slot: &Value, grant: &Value) -> bool {
    let listed = |key: &str| grant[key].as_array().into_iter().flatten();
    let path = slot["path"].as_str().and_then(|path| PathPattern::parse(path).ok());
    let covers = |granted: &Value| {
        let granted = granted.as_str().and_then(|granted| PathPattern::parse(granted).ok());
        granted.zip(path.as_ref()).is_some_and(|(granted, path)| granted.covers(path))
    };
    let operations = grant["operations"]["allow"].as_array();
    let operation = slot["operation"].is_null() || operations.is_some_and(|allow| allow.contains(&slot["operation"]));
    listed("methods").any(|method| *method == slot["method"]) && listed("paths").any(covers) && operation
}

/// Returns true if a slot can take a secret of this name in this policy.
fn is_known(name: &str, grants: &[Arc<Grant>]) -> bool {
    let captured = |grant: &Arc<Grant>| grant.captures.iter().any(|capture| capture.name == name);
    let taken = |grant: &Arc<Grant>| grant.slots.iter().any(|slot| slot.takes.iter().any(|taken| taken == name));
    name == AGENT || grants.iter().any(|grant| captured(grant) || taken(grant))
}

/// Returns a slot as it is written in a file.
pub(super) fn slot_json(slot: &Slot) -> Value {
    let (path, place) = (slot.path.to_string(), slot.place.to_string());
    let mut line = json!({"method": slot.method, "path": path, "place": place, "takes": slot.takes});
    if let Some(operation) = &slot.operation {
        line["operation"] = json!(operation);
    }
    if !slot.show.is_empty() {
        line["show"] = slot.show.iter().map(ToString::to_string).collect();
    }
    line
}

/// Returns `wanted`, followed by a number if that id is taken.
pub(super) fn free_id(wanted: &str, taken: &dyn Fn(&str) -> bool) -> String {
    if !taken(wanted) {
        return wanted.to_owned();
    }
    let stem: String = wanted.chars().take(56).collect();
    let numbered = (2..10_000).map(|number| format!("{stem}-{number}")).find(|id| !taken(id));
    numbered.unwrap_or_else(|| wanted.to_owned())
}

/// What another grant for the same origin copies from a grant, as it is written in the policy.
#[derive(Clone)]
pub(super) struct SharedSettings {
    pub(super) to: String,
    /// The paths relative to the URL in `to`.
    pub(super) paths: Vec<PathPattern>,
    settings: Map<String, Value>,
    slots: Vec<Value>,
}

impl SharedSettings {
    /// Takes the settings from a grant as it is written. A private key that is written into the
    /// policy is left out.
    pub(super) fn of(written: &Value, to: &OriginSpec, paths: &[PathPattern]) -> SharedSettings {
        let mut settings = Map::new();
        for key in ["addresses", "tls", "plain_http", "auth"] {
            if let Some(value) = written.get(key) {
                settings.insert(key.to_owned(), value.clone());
            }
        }
        let literal = |tls: &Value| tls["client"]["key"].as_str().is_some_and(|key| key.contains("-----BEGIN"));
        if let Some(tls) = settings.get_mut("tls").filter(|tls| literal(tls)).and_then(Value::as_object_mut) {
            tls.remove("client");
        }
        let slots = written.get("slots").and_then(Value::as_array).cloned().unwrap_or_default();
        SharedSettings { to: to.to_string(), paths: paths.to_vec(), settings, slots }
    }
}

impl fmt::Debug for SharedSettings {
    /// Shows nothing: the settings are in the grant itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSettings")
    }
}
