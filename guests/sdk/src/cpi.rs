//! The trait that a guest implements: every method of the CPI contract, in its
//! richest form. The runtime shapes arguments and answers for the API version
//! of each caller. What a guest leaves out answers `not-implemented`.

use crate::{
    Cid, CreatedNetwork, CreatedVm, Description, DiskHint, Error, Json, Metadata, NetworkSpec, VmRequest, VmSize,
};

/// The names of the methods, as [`Description`] lists them.
pub const METHODS: [&str; 21] = [
    "create_stemcell",
    "delete_stemcell",
    "create_vm",
    "delete_vm",
    "has_vm",
    "reboot_vm",
    "set_vm_metadata",
    "calculate_vm_cloud_properties",
    "create_disk",
    "delete_disk",
    "has_disk",
    "attach_disk",
    "detach_disk",
    "set_disk_metadata",
    "get_disks",
    "resize_disk",
    "update_disk",
    "snapshot_disk",
    "delete_snapshot",
    "create_network",
    "delete_network",
];

/// A [`Description`] from literals.
pub fn describe(name: &str, version: &str, stemcell_formats: &[&str], methods: &[&str]) -> Description {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Description {
        name: name.to_owned(),
        version: version.to_owned(),
        stemcell_formats: owned(stemcell_formats),
        methods: owned(methods),
    }
}

fn missing<T>(method: &str) -> Result<T, Error> {
    Err(Error::not_implemented(method))
}

/// A BOSH CPI.
#[expect(unused_variables, reason = "the defaults ignore their arguments, whose names are documentation")]
pub trait Cpi: Sized {
    /// Who this guest is. Asked once, when the guest is prepared, with every
    /// import denied. Methods that are not listed never reach the guest.
    fn describe() -> Description;

    /// Called before each method: the place to read [`crate::config`].
    fn open() -> Result<Self, Error>;

    /// Turns the image of this call (see [`crate::image`]) into something that
    /// VMs can be made of.
    fn create_stemcell(&self, cloud_properties: Json, tags: Metadata) -> Result<Cid, Error> {
        missing("create_stemcell")
    }

    /// Answers [`Error::stemcell_not_found`] for one that is gone.
    fn delete_stemcell(&self, stemcell: Cid) -> Result<(), Error> {
        missing("delete_stemcell")
    }

    /// Must send the seal of [`crate::agent::bootstrap`] to the cloud.
    fn create_vm(&self, request: VmRequest) -> Result<CreatedVm, Error> {
        missing("create_vm")
    }

    fn delete_vm(&self, vm: Cid) -> Result<(), Error> {
        missing("delete_vm")
    }

    fn has_vm(&self, vm: Cid) -> Result<bool, Error> {
        missing("has_vm")
    }

    fn reboot_vm(&self, vm: Cid) -> Result<(), Error> {
        missing("reboot_vm")
    }

    fn set_vm_metadata(&self, vm: Cid, metadata: Metadata) -> Result<(), Error> {
        missing("set_vm_metadata")
    }

    /// Cloud properties of the smallest VM that is at least this large.
    fn calculate_vm_cloud_properties(&self, size: VmSize) -> Result<Json, Error> {
        missing("calculate_vm_cloud_properties")
    }

    /// `vm` is the VM that the disk will most likely be attached to.
    fn create_disk(&self, size_mib: u64, cloud_properties: Json, vm: Option<Cid>) -> Result<Cid, Error> {
        missing("create_disk")
    }

    fn delete_disk(&self, disk: Cid) -> Result<(), Error> {
        missing("delete_disk")
    }

    fn has_disk(&self, disk: Cid) -> Result<bool, Error> {
        missing("has_disk")
    }

    /// Answers where the Agent finds the disk.
    fn attach_disk(&self, vm: Cid, disk: Cid) -> Result<DiskHint, Error> {
        missing("attach_disk")
    }

    fn detach_disk(&self, vm: Cid, disk: Cid) -> Result<(), Error> {
        missing("detach_disk")
    }

    fn set_disk_metadata(&self, disk: Cid, metadata: Metadata) -> Result<(), Error> {
        missing("set_disk_metadata")
    }

    fn get_disks(&self, vm: Cid) -> Result<Vec<Cid>, Error> {
        missing("get_disks")
    }

    fn resize_disk(&self, disk: Cid, size_mib: u64) -> Result<(), Error> {
        missing("resize_disk")
    }

    /// Answers the new cloud ID if the disk got one.
    fn update_disk(&self, disk: Cid, size_mib: u64, cloud_properties: Json) -> Result<Option<Cid>, Error> {
        missing("update_disk")
    }

    fn snapshot_disk(&self, disk: Cid, metadata: Metadata) -> Result<Cid, Error> {
        missing("snapshot_disk")
    }

    fn delete_snapshot(&self, snapshot: Cid) -> Result<(), Error> {
        missing("delete_snapshot")
    }

    fn create_network(&self, spec: NetworkSpec) -> Result<CreatedNetwork, Error> {
        missing("create_network")
    }

    fn delete_network(&self, network: Cid) -> Result<(), Error> {
        missing("delete_network")
    }
}
