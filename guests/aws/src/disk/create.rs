//! `create_disk`: creates a volume in the availability zone of the VM that will probably get it.

use serde_json::{Value, json};
use wasm_cpi_sdk::poll::Poll;
use wasm_cpi_sdk::{Cid, Error, Json, clock, log, random};

use super::properties::DiskProperties;
use super::{STATE_TIMEOUT, UNKNOWN_BUDGET, delete, gib, instance};
use crate::api::ApiError;
use crate::session::Session;

pub(crate) fn create(
    session: &Session,
    size_mib: u64,
    cloud_properties: &Json,
    vm: Option<&str>,
) -> Result<Cid, Error> {
    let properties: DiskProperties = cloud_properties.parse()?;
    let parameters = parameters(session, size_mib, &properties, vm)?;
    let disk = session.ec2().create_volume(&parameters).send().map_err(failure)?;
    match wait_until_available(session, &disk) {
        Ok(()) => Ok(disk),
        Err(error) => {
            // The Director does not know the disk yet, so it would never delete it.
            if let Err(left) = delete::undo(session, &disk) {
                log::error(format_args!("disk {disk} is left in the cloud: {left}"));
                return Err(Error::cloud(format!(
                    "creating a disk: {error}; disk `{disk}` is left in the cloud, because deleting it failed: {left}"
                )));
            }
            Err(error.context("creating a disk"))
        }
    }
}

fn parameters(session: &Session, size_mib: u64, disk: &DiskProperties, vm: Option<&str>) -> Result<Value, Error> {
    let encryption = disk.encryption(session)?;
    let mut parameters = json!({
        "Size": gib(size_mib),
        "VolumeType": disk.kind(),
        "Iops": disk.iops,
        "Throughput": disk.throughput,
        "KmsKeyId": encryption.key,
        "TagSpecification": disk.tags().specification(&["volume"]),
        "ClientToken": session.tokens.token("volume"),
    });
    if encryption.encrypted {
        parameters["Encrypted"] = json!(true);
    }
    parameters["AvailabilityZone"] = json!(match vm {
        Some(vm) => instance(session, vm)?.zone,
        None => any_zone(session)?,
    });
    Ok(parameters)
}

/// Returns a random zone of the region.
fn any_zone(session: &Session) -> Result<String, Error> {
    let zones = session.ec2().zones().send()?;
    let number = random::bytes(1).first().copied().map_or(0, usize::from);
    zones.get(number % zones.len().max(1)).cloned().ok_or_else(|| {
        Error::cloud(format!("region {} has no availability zone that can be used", session.properties.region()))
    })
}

/// Returns the error of a request for a volume.
fn failure(error: ApiError) -> Error {
    let is_passing = error.is("InsufficientVolumeCapacity");
    let is_full = is_passing || matches!(error.code(), "VolumeLimitExceeded" | "MaxIOPSLimitExceeded");
    let error = Error::from(error).context("creating a disk");
    if is_full { Error::no_disk_space(error.message).ok_to_retry(is_passing) } else { error }
}

fn wait_until_available(session: &Session, disk: &str) -> Result<(), Error> {
    let (query, start) = (session.ec2().volume(disk), clock::monotonic());
    Poll::for_at_most(STATE_TIMEOUT).with_jitter().until(&format!("disk `{disk}` to be available"), || {
        let volume = match query.send() {
            Ok(found) => found.into_iter().find(|volume| volume.id == disk),
            Err(error) if error.is("InvalidVolume.NotFound") => None,
            Err(error) => return Err(error.into()),
        };
        let is_new = clock::monotonic().saturating_sub(start) < UNKNOWN_BUDGET;
        match volume.as_ref().map(|volume| &*volume.status) {
            Some("available") => Ok(Some(())),
            Some("creating") => Ok(None),
            None if is_new => Ok(None),
            // EC2 accepts the key of a volume before it tries to use it.
            found => Err(Error::cloud(format!(
                "EC2 could not create disk `{disk}`: expected status `available`, found `{}`; if the disk is encrypted, check \
                 that its key exists and that the credentials may use it",
                found.unwrap_or("not found")
            ))),
        }
    })
}
