//! The typed arguments of each method.
//!
//! More arguments than the contract has are rejected, as in Ruby CPIs. The last ones may be missing or
//! null where real clients send that.

use crate::failure::Failure;
use crate::rpc::method::Method;
use serde_json::{Map, Value};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::strict_json::whole_number;

/// A JSON object that keeps the order of the caller's keys.
pub type Object = Map<String, Value>;

/// A method with its arguments.
#[derive(Clone, PartialEq)]
pub enum Call {
    Info,
    CreateStemcell {
        image_path: String,
        cloud_properties: Object,
        tags: Object,
    },
    DeleteStemcell {
        stemcell: String,
    },
    CreateVm {
        agent_id: String,
        stemcell: String,
        cloud_properties: Object,
        networks: Object,
        disks: Vec<String>,
        env: Object,
    },
    DeleteVm {
        vm: String,
    },
    HasVm {
        vm: String,
    },
    RebootVm {
        vm: String,
    },
    SetVmMetadata {
        vm: String,
        metadata: Object,
    },
    CalculateVmCloudProperties {
        ram_mib: u64,
        cpu: u32,
        ephemeral_disk_mb: u64,
    },
    CreateDisk {
        size_mib: u64,
        cloud_properties: Object,
        vm: Option<String>,
    },
    DeleteDisk {
        disk: String,
    },
    HasDisk {
        disk: String,
    },
    AttachDisk {
        vm: String,
        disk: String,
    },
    DetachDisk {
        vm: String,
        disk: String,
    },
    SetDiskMetadata {
        disk: String,
        metadata: Object,
    },
    GetDisks {
        vm: String,
    },
    ResizeDisk {
        disk: String,
        size_mib: u64,
    },
    UpdateDisk {
        disk: String,
        size_mib: u64,
        cloud_properties: Object,
    },
    SnapshotDisk {
        disk: String,
        metadata: Object,
    },
    DeleteSnapshot {
        snapshot: String,
    },
    CreateNetwork {
        spec: Object,
    },
    DeleteNetwork {
        network: String,
    },
}

impl Call {
    pub fn parse(method: Method, arguments: Vec<Value>, api_version: u32) -> Result<Call, Failure> {
        let mut args = Arguments { method, given: arguments.len(), left: arguments.into_iter(), position: 0 };
        let call = match method {
            Method::Info => Call::Info,
            Method::CreateStemcell => {
                let (image_path, cloud_properties) =
                    (args.text("image_path")?, args.object_or_null("cloud_properties")?);
                let options = if api_version >= 3 { args.optional_object("options")? } else { Object::new() };
                let tags = match options.get("tags") {
                    None | Some(Value::Null) => Object::new(),
                    Some(Value::Object(tags)) => tags.clone(),
                    Some(_) => return Err(args.wrong("options", "an object whose `tags` is an object")),
                };
                Call::CreateStemcell { image_path, cloud_properties, tags }
            }
            Method::DeleteStemcell => Call::DeleteStemcell { stemcell: args.text("stemcell_cid")? },
            Method::CreateVm => Call::CreateVm {
                agent_id: args.text("agent_id")?,
                stemcell: args.text("stemcell_cid")?,
                cloud_properties: args.object_or_null("cloud_properties")?,
                networks: args.networks()?,
                disks: args.optional_texts("disk_cids")?,
                env: args.optional_object("env")?,
            },
            Method::DeleteVm => Call::DeleteVm { vm: args.text("vm_cid")? },
            Method::HasVm => Call::HasVm { vm: args.text("vm_cid")? },
            Method::RebootVm => Call::RebootVm { vm: args.text("vm_cid")? },
            Method::SetVmMetadata => {
                Call::SetVmMetadata { vm: args.text("vm_cid")?, metadata: args.object("metadata")? }
            }
            Method::CalculateVmCloudProperties => {
                let size = args.object("desired_instance_size")?;
                let field = |key: &str| {
                    size.get(key).and_then(whole_number).ok_or_else(|| args.wrong(key, "a non-negative whole number"))
                };
                Call::CalculateVmCloudProperties {
                    ram_mib: field("ram")?,
                    cpu: u32::try_from(field("cpu")?).map_err(|_| args.wrong("cpu", "a whole number below 2^32"))?,
                    ephemeral_disk_mb: field("ephemeral_disk_size")?,
                }
            }
            Method::CreateDisk => Call::CreateDisk {
                size_mib: args.number("size")?,
                cloud_properties: args.object_or_null("cloud_properties")?,
                vm: args.optional_text("vm_cid")?,
            },
            Method::DeleteDisk => Call::DeleteDisk { disk: args.text("disk_cid")? },
            Method::HasDisk => Call::HasDisk { disk: args.text("disk_cid")? },
            Method::AttachDisk => Call::AttachDisk { vm: args.text("vm_cid")?, disk: args.text("disk_cid")? },
            Method::DetachDisk => Call::DetachDisk { vm: args.text("vm_cid")?, disk: args.text("disk_cid")? },
            Method::SetDiskMetadata => {
                Call::SetDiskMetadata { disk: args.text("disk_cid")?, metadata: args.object("metadata")? }
            }
            Method::GetDisks => Call::GetDisks { vm: args.text("vm_cid")? },
            Method::ResizeDisk => Call::ResizeDisk { disk: args.text("disk_cid")?, size_mib: args.number("new_size")? },
            Method::UpdateDisk => Call::UpdateDisk {
                disk: args.text("disk_cid")?,
                size_mib: args.number("new_size")?,
                cloud_properties: args.object_or_null("cloud_properties")?,
            },
            Method::SnapshotDisk => {
                Call::SnapshotDisk { disk: args.text("disk_cid")?, metadata: args.object_or_null("metadata")? }
            }
            Method::DeleteSnapshot => Call::DeleteSnapshot { snapshot: args.text("snapshot_cid")? },
            Method::CreateNetwork => Call::CreateNetwork { spec: args.object("network_definition")? },
            Method::DeleteNetwork => Call::DeleteNetwork { network: args.text("network_cid")? },
        };
        args.end()?;
        Ok(call)
    }

    pub fn method(&self) -> Method {
        match self {
            Call::Info => Method::Info,
            Call::CreateStemcell { .. } => Method::CreateStemcell,
            Call::DeleteStemcell { .. } => Method::DeleteStemcell,
            Call::CreateVm { .. } => Method::CreateVm,
            Call::DeleteVm { .. } => Method::DeleteVm,
            Call::HasVm { .. } => Method::HasVm,
            Call::RebootVm { .. } => Method::RebootVm,
            Call::SetVmMetadata { .. } => Method::SetVmMetadata,
            Call::CalculateVmCloudProperties { .. } => Method::CalculateVmCloudProperties,
            Call::CreateDisk { .. } => Method::CreateDisk,
            Call::DeleteDisk { .. } => Method::DeleteDisk,
            Call::HasDisk { .. } => Method::HasDisk,
            Call::AttachDisk { .. } => Method::AttachDisk,
            Call::DetachDisk { .. } => Method::DetachDisk,
            Call::SetDiskMetadata { .. } => Method::SetDiskMetadata,
            Call::GetDisks { .. } => Method::GetDisks,
            Call::ResizeDisk { .. } => Method::ResizeDisk,
            Call::UpdateDisk { .. } => Method::UpdateDisk,
            Call::SnapshotDisk { .. } => Method::SnapshotDisk,
            Call::DeleteSnapshot { .. } => Method::DeleteSnapshot,
            Call::CreateNetwork { .. } => Method::CreateNetwork,
            Call::DeleteNetwork { .. } => Method::DeleteNetwork,
        }
    }

    /// Returns the VM IDs among the arguments for which this call may use the registry. The VM of
    /// `create_disk` is only a hint, and is not among them.
    pub fn registry_ids(&self) -> Vec<String> {
        match self {
            Call::DeleteVm { vm } | Call::HasVm { vm } | Call::RebootVm { vm } | Call::GetDisks { vm } => {
                vec![vm.clone()]
            }
            Call::SetVmMetadata { vm, .. } | Call::AttachDisk { vm, .. } | Call::DetachDisk { vm, .. } => {
                vec![vm.clone()]
            }
            _ => Vec::new(),
        }
    }
}

/// Reads the arguments of a call one after another.
struct Arguments {
    method: Method,
    given: usize,
    left: std::vec::IntoIter<Value>,
    position: usize,
}

impl Arguments {
    fn next(&mut self, name: &str) -> Result<Value, Failure> {
        self.position += 1;
        self.left.next().ok_or_else(|| {
            Failure::request(format!(
                "`{}` got {} arguments; argument {} (`{name}`) is missing",
                self.method.name(),
                self.given,
                self.position
            ))
        })
    }

    fn optional(&mut self) -> Value {
        self.position += 1;
        self.left.next().unwrap_or(Value::Null)
    }

    /// Rejects arguments that were not read.
    fn end(mut self) -> Result<(), Failure> {
        Check::Arity.ensure(self.left.next().is_none(), || {
            let (method, given, position) = (self.method.name(), self.given, self.position);
            Failure::request(format!(
                "`{method}` got {given} arguments, but takes at most {position} in this API version"
            ))
        })
    }

    fn wrong(&self, name: &str, expected: &str) -> Failure {
        Failure::request(format!("`{}`: argument {} (`{name}`) must be {expected}", self.method.name(), self.position))
    }

    fn text(&mut self, name: &str) -> Result<String, Failure> {
        match self.next(name)? {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.wrong(name, "a non-empty string")),
        }
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.optional() {
            Value::Null => Ok(None),
            // The CLI's Go structs turn a missing VM into an empty string.
            Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            _ => Err(self.wrong(name, "a string or null")),
        }
    }

    fn optional_texts(&mut self, name: &str) -> Result<Vec<String>, Failure> {
        let values = match self.optional() {
            Value::Null => return Ok(Vec::new()),
            Value::Array(values) => values,
            _ => return Err(self.wrong(name, "an array of strings")),
        };
        values
            .into_iter()
            .map(|value| match value {
                Value::String(text) => Ok(text),
                _ => Err(self.wrong(name, "an array of strings")),
            })
            .collect()
    }

    fn number(&mut self, name: &str) -> Result<u64, Failure> {
        let value = self.next(name)?;
        whole_number(&value).ok_or_else(|| self.wrong(name, "a non-negative whole number"))
    }

    fn object(&mut self, name: &str) -> Result<Object, Failure> {
        match self.next(name)? {
            Value::Object(object) => Ok(object),
            _ => Err(self.wrong(name, "an object")),
        }
    }

    /// Reads an object. The Director sends null if a stemcell has no cloud_properties.
    fn object_or_null(&mut self, name: &str) -> Result<Object, Failure> {
        match self.next(name)? {
            Value::Object(object) => Ok(object),
            Value::Null => Ok(Object::new()),
            _ => Err(self.wrong(name, "an object or null")),
        }
    }

    fn optional_object(&mut self, name: &str) -> Result<Object, Failure> {
        match self.optional() {
            Value::Object(object) => Ok(object),
            Value::Null => Ok(Object::new()),
            _ => Err(self.wrong(name, "an object or null")),
        }
    }

    fn networks(&mut self) -> Result<Object, Failure> {
        let networks = self.object("networks")?;
        match networks.iter().find(|(_, network)| !network.is_object()) {
            None => Ok(networks),
            Some((name, _)) => Err(self.wrong("networks", &format!("an object of objects; `{name}` is not an object"))),
        }
    }
}

#[cfg(test)]
mod tests;
