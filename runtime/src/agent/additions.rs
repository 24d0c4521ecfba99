//! The values that a guest adds to the settings, because the cloud decided them. The types mirror
//! `wit/agent.wit`. Their content is untrusted until it is checked.

use serde_json::{Map, Value};

/// The additions to the settings of one VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    pub vm_name: String,
    /// The device path of the root disk.
    pub system_disk: Option<String>,
    pub ephemeral_disk: Option<DiskHint>,
    pub raw_ephemeral_disks: Vec<DiskHint>,
    pub networks: Vec<NetworkAddition>,
    /// The encodings of the user-data, in the order in which they are applied.
    pub encodings: Vec<Encoding>,
}

/// The additions to one network of the Director.
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
    /// The text of a JSON array.
    pub routes: Option<String>,
}

/// An encoding of user-data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A JSON string literal.
    JsonString,
    Base64,
    Base64Url,
}

/// The hint by which the Agent finds a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskHint {
    Text(String),
    Fields(Vec<(String, String)>),
}

const EMPTY: &str = "a disk hint is empty; give a device path, or fields that identify the disk";

impl DiskHint {
    /// Returns the hint as the Agent reads it: a string, or an object with string values. Rejects
    /// empty hints, as clients of the Director do.
    pub fn to_json(&self) -> Result<Value, String> {
        match self {
            DiskHint::Text(text) if text.is_empty() => Err(EMPTY.into()),
            DiskHint::Text(text) => Ok(Value::String(text.clone())),
            DiskHint::Fields(fields) => {
                let mut object = Map::new();
                for (key, value) in fields {
                    if key.is_empty() || object.insert(key.clone(), Value::String(value.clone())).is_some() {
                        return Err(format!(
                            "a disk hint has the key `{key}` twice, or an empty key; give each key once"
                        ));
                    }
                }
                if object.is_empty() { Err(EMPTY.into()) } else { Ok(Value::Object(object)) }
            }
        }
    }

    /// Returns the hint as the Agent reads raw ephemeral disks: an object whose keys are the names of
    /// the Agent's fields, ignoring case. The Agent does not accept a string here.
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
