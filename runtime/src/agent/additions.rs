//! What a guest adds to the settings: what the cloud decided. Mirrors
//! `wit/agent.wit`, and is hostile until checked.

use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    pub vm_name: String,
    /// Device path of the root disk.
    pub system_disk: Option<String>,
    pub ephemeral_disk: Option<DiskHint>,
    pub raw_ephemeral_disks: Vec<DiskHint>,
    pub networks: Vec<NetworkAddition>,
    /// Applied in order.
    pub encodings: Vec<Encoding>,
    /// What the platform takes, after encoding.
    pub max_bytes: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkAddition {
    pub name: String,
    pub mac: Option<String>,
    pub ip: Option<String>,
    pub netmask: Option<String>,
    pub gateway: Option<String>,
    pub dns: Vec<String>,
    pub use_dhcp: Option<bool>,
    pub preconfigured: Option<bool>,
    pub alias: Option<String>,
    /// A JSON array.
    pub routes: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A JSON string literal.
    JsonString,
    Base64,
    Base64Url,
}

/// How the Agent finds a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskHint {
    Text(String),
    Fields(Vec<(String, String)>),
}

impl DiskHint {
    /// As the Agent reads hints: a string, or an object with string values.
    /// Clients refuse empty ones.
    pub fn to_json(&self) -> Result<Value, String> {
        match self {
            DiskHint::Text(text) if text.is_empty() => Err("a disk hint is empty".into()),
            DiskHint::Text(text) => Ok(Value::String(text.clone())),
            DiskHint::Fields(fields) => {
                let mut object = Map::new();
                for (key, value) in fields {
                    if key.is_empty() || object.insert(key.clone(), Value::String(value.clone())).is_some() {
                        return Err(format!("a disk hint has the key `{key}` twice, or an empty key"));
                    }
                }
                if object.is_empty() { Err("a disk hint is empty".into()) } else { Ok(Value::Object(object)) }
            }
        }
    }

    /// As the Agent reads raw ephemeral disks: into a struct, by its field
    /// names without regard to case, and never from a string.
    pub(super) fn to_raw_json(&self) -> Result<Value, String> {
        match self.to_json()? {
            Value::Object(fields) => {
                let renamed = fields.into_iter().map(|(key, value)| match key.as_str() {
                    "volume_id" => ("VolumeID".to_owned(), value),
                    "host_device_id" => ("HostDeviceID".to_owned(), value),
                    _ => (key, value),
                });
                Ok(Value::Object(renamed.collect()))
            }
            path => Ok(Value::Object(Map::from_iter([("path".to_owned(), path)]))),
        }
    }
}
