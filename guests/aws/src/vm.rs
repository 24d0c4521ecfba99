//! VMs: instances of EC2.

mod metadata;

use wasm_cpi_sdk::{CreatedVm, Error, Json, VmRequest, VmSize};

use crate::session::Session;
pub(crate) use metadata::set as set_metadata;

pub(crate) fn create(_: &Session, _: VmRequest) -> Result<CreatedVm, Error> {
    Err(Error::not_implemented("create_vm"))
}

pub(crate) fn delete(_: &Session, _: &str) -> Result<(), Error> {
    Err(Error::not_implemented("delete_vm"))
}

/// Returns true if the instance exists and does not end.
pub(crate) fn exists(session: &Session, vm: &str) -> Result<bool, Error> {
    match session.ec2().instance(vm).send() {
        Ok(found) => Ok(found.iter().any(|instance| instance.id == vm && instance.is_alive())),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn reboot(session: &Session, vm: &str) -> Result<(), Error> {
    session.ec2().reboot_instance(vm).send().map_err(|error| not_found(error, vm))
}

pub(crate) fn cloud_properties(_: &Session, _: VmSize) -> Result<Json, Error> {
    Err(Error::not_implemented("calculate_vm_cloud_properties"))
}

/// Returns the error of a request about an instance.
fn not_found(error: crate::api::ApiError, vm: &str) -> Error {
    if error.is("InvalidInstanceID.NotFound") { Error::vm_not_found(vm) } else { error.into() }
}
