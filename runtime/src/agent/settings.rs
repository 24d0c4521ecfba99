//! Builds the settings documents, exactly as the Agent decodes them, and the text of the user-data.

use super::additions::{Additions, Encoding};
use super::config::AgentConfig;
use super::{AgentError, VmSpec, networks};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use serde_json::{Map, Value, json};
use wasm_cpi_checks::Check;

type Object = Map<String, Value>;

/// The size of an encoded text at which encoding stops. The session then refuses it.
const MAX_STAGE: usize = 1024 * 1024;

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
fn disks(additions: &Additions) -> Result<Value, String> {
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
    let mut data = dns(full);
    data.extend(full.clone());
    data
}

/// Returns the user-data of a VM that reads its settings from the registry.
pub(super) fn registry_user_data(registry: Value, full: &Object, vm_name: &str) -> Object {
    let mut data = dns(full);
    data.insert("networks".into(), full.get("networks").cloned().unwrap_or_default());
    data.insert("registry".into(), registry);
    data.insert("server".into(), json!({"name": vm_name}));
    data
}

fn dns(full: &Object) -> Object {
    let servers = full.get("networks").and_then(Value::as_object).and_then(networks::name_servers);
    servers.into_iter().map(|servers| ("dns".to_owned(), json!({"nameserver": servers}))).collect()
}

/// Returns the text after each encoding, starting with the plain text, because a server may undo
/// some of them. The last one is sent to the platform. If it is too large, the error names the
/// largest parts, but not their contents.
pub(super) fn encode(data: &Object, encodings: &[Encoding], max_bytes: Option<u32>) -> Result<Vec<String>, String> {
    if encodings.len() > 4 {
        return Err("the user-data has more than four encodings; use at most four".into());
    }
    let mut text = Value::Object(data.clone()).to_string();
    let mut stages = vec![text.clone()];
    for encoding in encodings {
        text = match encoding {
            Encoding::JsonString => Value::String(text).to_string(),
            Encoding::Base64 => BASE64_STANDARD.encode(text),
            Encoding::Base64Url => BASE64_URL_SAFE.encode(text),
        };
        stages.push(text.clone());
        if Check::AgentTotal.refuses(text.len() > MAX_STAGE) {
            break;
        }
    }
    match max_bytes {
        Some(max) if text.len() as u64 > u64::from(max) => Err(format!(
            "the agent settings take {} bytes as user-data, but the platform takes only {max}; the largest parts before \
             encoding are {}; make them smaller in the deployment or in the CPI's config",
            text.len(),
            largest(data)
        )),
        _ => Ok(stages),
    }
}

fn largest(data: &Object) -> String {
    let mut parts: Vec<(&String, usize)> = data.iter().map(|(name, part)| (name, part.to_string().len())).collect();
    parts.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    parts.iter().take(3).map(|(name, size)| format!("`{name}` ({size} bytes)")).collect::<Vec<_>>().join(", ")
}
