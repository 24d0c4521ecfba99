//! Builds the settings documents, exactly as the Agent decodes them, and the text of the user-data.

use super::additions::{Additions, Encoding};
use super::config::AgentConfig;
use super::{AgentError, VmSpec, networks, size};
use crate::net::response::agent_settings::MARKER;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use serde_json::{Map, Value, json};
use wasm_cpi_checks::Check;

type Object = Map<String, Value>;

/// Returns everything that the Agent needs. It becomes the user-data in registry-less mode, and is
/// stored in the registry otherwise.
pub(super) fn build(config: &AgentConfig, spec: &VmSpec, additions: &Additions) -> Result<Object, AgentError> {
    let mut settings = Map::new();
    settings.insert("agent_id".into(), json!(spec.agent_id));
    settings.insert("vm".into(), json!({"name": additions.vm_name}));
    let networks = networks::with_additions(&spec.networks, &additions.networks)?;
    settings.insert("networks".into(), Value::Object(networks));
    settings.insert("disks".into(), disks(additions)?);
    settings.insert("env".into(), spec.env.clone());
    if let Some(mbus) = &config.mbus {
        settings.insert("mbus".into(), json!(mbus.reveal()));
    }
    settings.insert("ntp".into(), json!(config.ntp));
    if !config.blobstore.is_empty() {
        settings.insert("blobstore".into(), Value::Object(config.blobstore.clone()));
    }
    Ok(settings)
}

/// Returns the disks: `system` is a string, the others are hints. Persistent disks are added later,
/// by the Director or in the registry.
pub(super) fn disks(additions: &Additions) -> Result<Value, String> {
    let mut disks = Map::new();
    if let Some(system) = &additions.system_disk {
        disks.insert("system".into(), json!(system));
    }
    if let Some(ephemeral) = &additions.ephemeral_disk {
        disks.insert("ephemeral".into(), ephemeral.to_json()?);
    }
    disks.insert("persistent".into(), json!({}));
    if !additions.raw_ephemeral_disks.is_empty() {
        let raw: Result<Vec<Value>, String> =
            additions.raw_ephemeral_disks.iter().map(|hint| hint.to_raw_json()).collect();
        disks.insert("raw_ephemeral".into(), Value::Array(raw?));
    }
    Ok(Value::Object(disks))
}

/// Returns the user-data of a VM that uses no registry.
pub(super) fn registryless_user_data(full: &Object) -> Object {
    marked(dns(full).into_iter().chain(full.clone()))
}

/// Returns the user-data of a VM that reads its settings from the registry.
pub(super) fn registry_user_data(registry: Value, full: &Object, vm_name: &str) -> Object {
    let mut data = dns(full);
    data.insert("networks".into(), full.get("networks").cloned().unwrap_or_default());
    data.insert("registry".into(), registry);
    data.insert("server".into(), json!({"name": vm_name}));
    marked(data)
}

/// Returns user-data whose first and last key hold the public marker, so that the host recognises
/// it in answers of servers, even if a part is cut off. The Agent ignores unknown keys.
fn marked(data: impl IntoIterator<Item = (String, Value)>) -> Object {
    let mark = |prefix: &str| (format!("{prefix}{MARKER}"), Value::Bool(true));
    std::iter::once(mark("_")).chain(data).chain([mark("__")]).collect()
}

fn dns(full: &Object) -> Object {
    let servers = full.get("networks").and_then(Value::as_object).and_then(networks::name_servers);
    servers.into_iter().map(|servers| ("dns".to_owned(), json!({"nameserver": servers}))).collect()
}

/// The parts of user-data that hold additions of the guest. No other part holds a text of the guest.
const GUEST_PARTS: [&str; 5] = ["vm", "networks", "disks", "dns", "server"];

/// Returns user-data as JSON in ASCII. Every kind of slot can hold it, whatever characters the secrets
/// in it have: a refusal would tell the guest something about them.
pub(super) fn user_data_json(data: &Object) -> String {
    let part = |(key, value): (&String, &Value)| {
        let guests = GUEST_PARTS.contains(&key.as_str());
        format!("{}:{}", ascii_json(&json!(key)), if guests { guest_json(value) } else { ascii_json(value) })
    };
    format!("{{{}}}", data.iter().map(part).collect::<Vec<_>>().join(","))
}

/// Returns JSON in ASCII.
pub(super) fn ascii_json(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        if matches!(c, ' '..='~') { text.push(c) } else { push_escaped(&mut text, c) }
    }
    text
}

/// Returns JSON in ASCII whose strings have only letters, digits and harmless characters as they are. A
/// server that reads user-data as a form, a URL or markup finds no syntax of the guest in it, so that a
/// guest cannot choose where a field with its secrets begins.
pub(super) fn guest_json(value: &Value) -> String {
    match value {
        Value::String(text) => guest_string(text),
        Value::Array(list) => format!("[{}]", list.iter().map(guest_json).collect::<Vec<_>>().join(",")),
        Value::Object(object) => {
            let member = |(key, value): (&String, &Value)| format!("{}:{}", guest_string(key), guest_json(value));
            format!("{{{}}}", object.iter().map(member).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn guest_string(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || " ._:/-_".contains(c);
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if Check::AgentText.choose(harmless(c), matches!(c, ' '..='~') && !matches!(c, '"' | '\\')) {
            quoted.push(c);
        } else {
            push_escaped(&mut quoted, c);
        }
    }
    quoted.push('"');
    quoted
}

fn push_escaped(text: &mut String, c: char) {
    c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
}

/// Returns the text after each encoding, starting with the plain text, because a server may undo
/// some of them. The last one is sent to the platform. `base` is the data without the guest's additions.
pub(super) fn encode(data: Object, base: Object, encodings: &[Encoding]) -> Vec<String> {
    let length = size::padded_length(&user_data_json(&base), encodings);
    let mut text = size::pad(user_data_json(&data), length, encodings);
    let mut stages = vec![text.clone()];
    for encoding in encodings {
        text = match encoding {
            Encoding::JsonString => Value::String(text).to_string(),
            Encoding::Base64 => BASE64_STANDARD.encode(text),
            Encoding::Base64Url => BASE64_URL_SAFE.encode(text),
        };
        stages.push(text.clone());
    }
    stages
}
