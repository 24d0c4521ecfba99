//! `resize_disk` and `update_disk`: change a volume in place. If EC2 cannot do that, the error is not-supported, and the
//! Director copies the disk instead.

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::{Cid, Error, Json, log};

use super::properties::DiskProperties;
use super::{get, gib, modification, set_tags};
use crate::api::ec2::Volume;
use crate::session::Session;
use crate::tags::Tags;

/// What a gp3 volume has without `iops` and `throughput`.
const GP3_IOPS: u64 = 3000;
const GP3_THROUGHPUT: u64 = 125;

pub(crate) fn resize(session: &Session, disk: &str, size_mib: u64) -> Result<(), Error> {
    let volume = get(session, disk)?;
    let mut change = Map::new();
    add_size(&mut change, &volume, gib(size_mib))?;
    apply(session, disk, &change)
}

pub(crate) fn update(
    session: &Session,
    disk: &str,
    size_mib: u64,
    cloud_properties: &Json,
) -> Result<Option<Cid>, Error> {
    let properties: DiskProperties = cloud_properties.parse()?;
    let volume = get(session, disk)?;
    check_encryption(session, &volume, &properties)?;
    let mut change = Map::new();
    add_size(&mut change, &volume, gib(size_mib))?;
    add_performance(&mut change, &volume, &properties);
    apply(session, disk, &change)?;
    let wanted = properties.tags();
    let missing: Tags = wanted
        .iter()
        .filter(|(key, value)| volume.tags.get(key) != Some(value))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    set_tags(session, disk, &missing)?;
    Ok(None)
}

fn apply(session: &Session, disk: &str, change: &Map<String, Value>) -> Result<(), Error> {
    if change.is_empty() {
        log::info(format_args!("disk {disk} already is as it should be"));
        return Ok(());
    }
    modification::modify(session, disk, change)
}

fn add_size(change: &mut Map<String, Value>, volume: &Volume, size: u64) -> Result<(), Error> {
    if size < volume.size_gib {
        let (disk, now) = (&volume.id, volume.size_gib);
        return Err(Error::not_supported(format!(
            "disk `{disk}` cannot shrink from {now} GiB to {size} GiB; request at least {now} GiB"
        )));
    }
    if size > volume.size_gib {
        change.insert("Size".to_owned(), json!(size));
    }
    Ok(())
}

/// Adds type, IOPS and throughput where the volume has others than a new one would have.
fn add_performance(change: &mut Map<String, Value>, volume: &Volume, properties: &DiskProperties) {
    let kind = properties.kind();
    let is_gp3 = kind == "gp3";
    let iops = properties.iops.or(is_gp3.then_some(GP3_IOPS));
    let throughput = properties.throughput.or(is_gp3.then_some(GP3_THROUGHPUT));
    if kind != volume.kind {
        change.insert("VolumeType".to_owned(), json!(kind));
    }
    let numbers = [("Iops", iops, volume.iops), ("Throughput", throughput, volume.throughput)];
    for (name, wanted, found) in numbers {
        if wanted.is_some() && (wanted != found || kind != volume.kind) {
            change.insert(name.to_owned(), json!(wanted));
        }
    }
}

/// Returns an error if the disk is encrypted otherwise than a new one would be, as its owner chose.
fn check_encryption(session: &Session, volume: &Volume, properties: &DiskProperties) -> Result<(), Error> {
    let wanted = properties.encryption(session)?;
    let cannot = |what: &str| Err(Error::not_supported(format!("disk `{}` {what}", volume.id)));
    if wanted.encrypted && !volume.encrypted {
        return cannot("is not encrypted, and EC2 cannot encrypt a volume that exists");
    }
    // An account can encrypt all its volumes, so a disk may be encrypted although no property says so.
    if properties.encrypted == Some(false) && volume.encrypted {
        return cannot("is encrypted, and EC2 cannot decrypt a volume");
    }
    // EC2 shows the ARN of a key, never one of its other names.
    let own = properties.kms_key_arn.as_deref().filter(|key| key.contains(":key/"));
    match (own, volume.kms_key.as_deref()) {
        (Some(wanted), Some(found)) if wanted != found => cannot("has another key, and EC2 cannot change it"),
        _ => Ok(()),
    }
}
