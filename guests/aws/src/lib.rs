//! The BOSH CPI for AWS. `session` holds the properties and the endpoints, `api` has one typed function per
//! operation, and `vm`, `disk` and `stemcell` implement the methods. README.md is the operator's manual.

mod api;
mod disk;
mod encryption;
mod error;
mod names;
mod properties;
mod session;
mod snapshot;
mod stemcell;
mod tags;
#[cfg(test)]
mod tests;
mod vm;

use wasm_cpi_sdk::{Cid, Cpi, CreatedVm, Description, DiskHint, Error, Json, Metadata, VmRequest, VmSize, description};

use session::Session;

wasm_cpi_sdk::needs!(include_str!("../needs.json"));
wasm_cpi_sdk::export_cpi!(Aws);

const STEMCELL_FORMATS: [&str; 2] = ["aws-raw", "aws-light"];

/// The methods of the contract without `create_network` and `delete_network`, which bosh-aws-cpi lacks, too.
const METHODS: [&str; 19] = [
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
];

struct Aws {
    session: Session,
}

impl Cpi for Aws {
    fn describe() -> Description {
        description("aws", env!("CARGO_PKG_VERSION"), &STEMCELL_FORMATS, &METHODS)
    }

    fn open() -> Result<Self, Error> {
        Ok(Self { session: Session::open()? })
    }

    fn create_stemcell(&self, cloud_properties: Json, tags: Metadata) -> Result<Cid, Error> {
        stemcell::create(&self.session, &cloud_properties, &tags)
    }

    fn delete_stemcell(&self, stemcell: Cid) -> Result<(), Error> {
        stemcell::delete(&self.session, &stemcell)
    }

    fn create_vm(&self, request: VmRequest) -> Result<CreatedVm, Error> {
        vm::create(&self.session, request)
    }

    fn delete_vm(&self, vm: Cid) -> Result<(), Error> {
        vm::delete(&self.session, &vm)
    }

    fn has_vm(&self, vm: Cid) -> Result<bool, Error> {
        vm::exists(&self.session, &vm)
    }

    fn reboot_vm(&self, vm: Cid) -> Result<(), Error> {
        vm::reboot(&self.session, &vm)
    }

    fn set_vm_metadata(&self, vm: Cid, metadata: Metadata) -> Result<(), Error> {
        vm::set_metadata(&self.session, &vm, &metadata)
    }

    fn calculate_vm_cloud_properties(&self, size: VmSize) -> Result<Json, Error> {
        vm::cloud_properties(&self.session, size)
    }

    fn create_disk(&self, size_mib: u64, cloud_properties: Json, vm: Option<Cid>) -> Result<Cid, Error> {
        disk::create(&self.session, size_mib, &cloud_properties, vm.as_deref())
    }

    fn delete_disk(&self, disk: Cid) -> Result<(), Error> {
        disk::delete(&self.session, &disk)
    }

    fn has_disk(&self, disk: Cid) -> Result<bool, Error> {
        disk::exists(&self.session, &disk)
    }

    fn attach_disk(&self, vm: Cid, disk: Cid) -> Result<DiskHint, Error> {
        disk::attach(&self.session, &vm, &disk)
    }

    fn detach_disk(&self, vm: Cid, disk: Cid) -> Result<(), Error> {
        disk::detach(&self.session, &vm, &disk)
    }

    fn set_disk_metadata(&self, disk: Cid, metadata: Metadata) -> Result<(), Error> {
        disk::set_metadata(&self.session, &disk, &metadata)
    }

    fn get_disks(&self, vm: Cid) -> Result<Vec<Cid>, Error> {
        disk::of_vm(&self.session, &vm)
    }

    fn resize_disk(&self, disk: Cid, size_mib: u64) -> Result<(), Error> {
        disk::resize(&self.session, &disk, size_mib)
    }

    fn update_disk(&self, disk: Cid, size_mib: u64, cloud_properties: Json) -> Result<Option<Cid>, Error> {
        disk::update(&self.session, &disk, size_mib, &cloud_properties)
    }

    fn snapshot_disk(&self, disk: Cid, metadata: Metadata) -> Result<Cid, Error> {
        disk::snapshot(&self.session, &disk, &metadata)
    }

    fn delete_snapshot(&self, snapshot: Cid) -> Result<(), Error> {
        disk::delete_snapshot(&self.session, &snapshot)
    }
}
