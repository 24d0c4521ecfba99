//! VMs: instances of EC2.

mod block_devices;
mod connections;
mod create;
mod delete;
mod deletion;
mod metadata;
mod networks;
mod properties;
mod security_groups;
mod size;
mod static_types;

use std::time::Duration;

use wasm_cpi_sdk::Error;

use crate::api::ApiError;
use crate::session::Session;

pub(crate) use create::create;
pub(crate) use delete::delete;
pub(crate) use metadata::set as set_metadata;
pub(crate) use size::cloud_properties;
pub(crate) use static_types::has_nvme_volumes;

/// How long an instance may take to run and to end. Bare metal takes longest.
const RUNNING_TIMEOUT: Duration = Duration::from_secs(20 * 60);
const ENDED_TIMEOUT: Duration = Duration::from_secs(20 * 60);

/// Returns true if the instance exists and has not ended.
pub(crate) fn exists(session: &Session, vm: &str) -> Result<bool, Error> {
    match session.ec2().instance(vm).send() {
        Ok(found) => Ok(found.iter().any(|instance| instance.id == vm && !instance.is_gone())),
        Err(error) if error.is("InvalidInstanceID.NotFound") => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn reboot(session: &Session, vm: &str) -> Result<(), Error> {
    session.ec2().reboot_instance(vm).send().map_err(|error| not_found(error, vm))
}

/// Returns the error of a request about an instance.
pub(crate) fn not_found(error: ApiError, vm: &str) -> Error {
    if error.is("InvalidInstanceID.NotFound") { Error::vm_not_found(vm) } else { error.into() }
}
