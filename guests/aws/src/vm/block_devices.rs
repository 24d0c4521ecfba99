//! The disks of a VM: the root disk, the ephemeral disk, and the disks of the host.

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::{Error, log};

use super::properties::{VmDisk, VmProperties, invalid};
use super::static_types;
use crate::api::ec2::{Image, InstanceType};
use crate::encryption::Encryption;
use crate::properties::Properties;

/// The name of the ephemeral disk. On Nitro the stemcell gives the NVMe device of an EBS volume this name.
const EPHEMERAL: &str = "/dev/sdb";
/// The root device of an image that does not say which one it is.
const DEFAULT_ROOT: &str = "/dev/xvda";
const DEFAULT_TYPE: &str = "gp3";
/// The size of an ephemeral disk in GiB for types without local disks.
const DEFAULT_EPHEMERAL_GIB: u64 = 10;

/// The disks in the form of the request and in the form of the agent settings.
#[derive(Debug)]
pub(super) struct BlockDevices {
    /// The list `BlockDeviceMapping`.
    pub(super) mappings: Vec<Value>,
    /// The path of the root disk.
    pub(super) system: String,
    /// The path of the ephemeral disk. Without one, the Agent uses free space of the root disk.
    pub(super) ephemeral: Option<String>,
    /// The paths of the disks that the Agent leaves as they are.
    pub(super) raw: Vec<String>,
}

/// The disks of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocalDisks {
    count: usize,
    has_nvme: bool,
}

impl BlockDevices {
    /// Returns true if EC2 has to describe the instance type.
    pub(super) fn need_description(vm: &VmProperties, properties: &Properties) -> bool {
        let uses_local_disks = vm.uses_raw_storage() || vm.ephemeral_disk().use_instance_storage == Some(true);
        uses_local_disks && properties.describes_instance_types() && vm.ephemeral_disk().use_root_disk != Some(true)
    }

    pub(super) fn plan(
        vm: &VmProperties,
        properties: &Properties,
        image: &Image,
        described: Option<&InstanceType>,
    ) -> Result<Self, Error> {
        let root = root_device(image);
        let mut all = Self { mappings: vec![], system: root.to_owned(), ephemeral: None, raw: vec![] };
        let disk = vm.ephemeral_disk();
        if disk.use_root_disk != Some(true) {
            all.add_ephemeral(vm, properties, &disk, described)?;
            if vm.uses_raw_storage() {
                all.add_raw(local_disks(vm, "raw_instance_storage", described)?);
            }
        }
        all.mappings.push(json!({"DeviceName": root, "Ebs": root_volume(vm, properties, image, root)?}));
        Ok(all)
    }

    fn add_ephemeral(
        &mut self,
        vm: &VmProperties,
        properties: &Properties,
        disk: &VmDisk,
        described: Option<&InstanceType>,
    ) -> Result<(), Error> {
        self.ephemeral = Some(EPHEMERAL.to_owned());
        if disk.use_instance_storage != Some(true) {
            let volume = ephemeral_volume(vm, properties, disk)?;
            self.mappings.push(json!({"DeviceName": EPHEMERAL, "Ebs": volume}));
            return Ok(());
        }
        let what = "ephemeral_disk.use_instance_storage";
        let local = local_disks(vm, what, described)?;
        // bosh-aws-cpi accepts the older types with NVMe disks, too.
        if local.has_nvme && static_types::local_disks(vm.instance_type()).is_none() {
            return Err(invalid(
                what,
                &format!(
                    "the local disks of {} are NVMe devices, whose names can change; use raw_instance_storage, or an ephemeral disk \
                     of EBS",
                    vm.instance_type()
                ),
            ));
        }
        self.mappings.push(json!({"DeviceName": EPHEMERAL, "VirtualName": "ephemeral0"}));
        Ok(())
    }

    /// Adds the disks of the host as raw disks. EC2 maps NVMe disks by itself, and ignores mappings of them.
    fn add_raw(&mut self, local: LocalDisks) {
        for number in 0..local.count {
            if local.has_nvme {
                self.raw.push(format!("/dev/nvme{number}n1"));
            } else {
                let device = format!("/dev/xvdb{}", letter(number));
                self.mappings.push(json!({"DeviceName": device, "VirtualName": format!("ephemeral{number}")}));
                self.raw.push(device);
            }
        }
    }
}

/// Returns the letter with this number, from `a`.
fn letter(number: usize) -> char {
    char::from(b'a' + u8::try_from(number % 26).unwrap_or(0))
}

/// Returns the device of the image that is its root disk: the root device itself, or the disk that it is a part of.
fn root_device(image: &Image) -> &str {
    let names = || image.devices.iter().map(|device| device.name.as_str()).filter(|name| !name.is_empty());
    let root = image.root_device.as_deref().unwrap_or_default();
    names().find(|name| *name == root).or_else(|| names().find(|name| root.starts_with(name))).unwrap_or(DEFAULT_ROOT)
}

fn root_volume(vm: &VmProperties, properties: &Properties, image: &Image, root: &str) -> Result<Value, Error> {
    let disk = vm.root_disk();
    let kind = disk.kind.as_deref().unwrap_or(DEFAULT_TYPE);
    let smallest = image.devices.iter().find(|device| device.name == root).and_then(|device| device.size_gib);
    let size = disk.size.map(gib).or(smallest);
    if let (Some(wanted), Some(smallest)) = (disk.size, smallest)
        && gib(wanted) < smallest
    {
        let what = format!("is smaller than the image, which has {smallest} GiB; set at least {} MiB", smallest * 1024);
        return Err(invalid("root_disk.size", &what));
    }
    let mut volume = Map::new();
    volume.insert("VolumeType".to_owned(), json!(kind));
    volume.insert("DeleteOnTermination".to_owned(), json!(true));
    set(&mut volume, "VolumeSize", size);
    // Other types have none, and bosh-aws-cpi leaves them out for those, too.
    set(&mut volume, "Iops", disk.iops.filter(|_| matches!(kind, "io1" | "io2" | "gp3")));
    set(&mut volume, "Throughput", disk.throughput.filter(|_| kind == "gp3"));
    // An image that is encrypted keeps its key if the request does not say anything.
    encrypt(&mut volume, "cloud_properties.root_disk", &disk, properties)?;
    Ok(Value::Object(volume))
}

fn ephemeral_volume(vm: &VmProperties, properties: &Properties, disk: &VmDisk) -> Result<Value, Error> {
    let size = match (disk.size, static_types::local_disks(vm.instance_type())) {
        (Some(mib), _) => gib(mib),
        (None, Some((local, _))) if !vm.uses_raw_storage() => {
            log::warn(format_args!(
                "cloud_properties.ephemeral_disk.size is not set: the ephemeral disk is an EBS volume of {local} GiB, as large \
                 as a local disk of {}; set the size, or use_instance_storage for the local disk",
                vm.instance_type()
            ));
            local
        }
        _ => DEFAULT_EPHEMERAL_GIB,
    };
    let mut volume = Map::new();
    volume.insert("VolumeType".to_owned(), json!(disk.kind.as_deref().unwrap_or(DEFAULT_TYPE)));
    volume.insert("VolumeSize".to_owned(), json!(size));
    volume.insert("DeleteOnTermination".to_owned(), json!(true));
    set(&mut volume, "Iops", disk.iops);
    set(&mut volume, "Throughput", disk.throughput);
    encrypt(&mut volume, "cloud_properties.ephemeral_disk", disk, properties)?;
    Ok(Value::Object(volume))
}

fn encrypt(volume: &mut Map<String, Value>, part: &str, disk: &VmDisk, properties: &Properties) -> Result<(), Error> {
    let encryption = Encryption::of_part(part, disk.encrypted, disk.kms_key_arn.as_deref(), properties)?;
    if encryption.encrypted {
        volume.insert("Encrypted".to_owned(), json!(true));
        set(volume, "KmsKeyId", encryption.key);
    }
    Ok(())
}

fn set(volume: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        volume.insert(name.to_owned(), value.into());
    }
}

/// Returns the disks of the host, or an error that names the property that needs them.
fn local_disks(vm: &VmProperties, needed_by: &str, described: Option<&InstanceType>) -> Result<LocalDisks, Error> {
    let kind = vm.instance_type();
    let found = match described {
        Some(described) => LocalDisks { count: described.disks_gb.len(), has_nvme: described.has_nvme_disks },
        None => {
            let count = static_types::local_disks(kind).map_or(0, |(_, count)| count);
            LocalDisks { count, has_nvme: static_types::has_nvme_disks(kind) }
        }
    };
    if found.count > 0 {
        return Ok(found);
    }
    let hint = match described {
        Some(_) => "use a type with local disks, or remove the property",
        None => {
            "it is not among the types that are known without asking EC2; set the property enable_describe_instance_types to true, \
             or use another type"
        }
    };
    Err(invalid(needed_by, &format!("instance type {kind} has no local disks; {hint}")))
}

/// Returns a size in MiB as GiB, rounded up.
fn gib(mib: u64) -> u64 {
    mib.div_ceil(1024)
}
