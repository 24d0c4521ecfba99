//! Registers a snapshot as an image.

use serde_json::{Value, json};
use wasm_cpi_sdk::{Error, clock, log, random};

use std::time::Duration;

use super::properties::StemcellProperties;
use crate::names;
use crate::session::Session;
use crate::tags::Tags;

/// The name of the root disk, as stemcells expect it.
const ROOT_DEVICE: &str = "/dev/xvda";

/// The name of the first local disk, which bosh-aws-cpi gives every image.
const LOCAL_DEVICE: &str = "/dev/sdb";

/// The pauses of the search for an image whose answer was lost.
const SEARCH_PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// Registers an image and returns its ID. The name is unique, so an image whose answer was lost is found by it.
pub(super) fn register(
    session: &Session,
    properties: &StemcellProperties,
    tags: &Tags,
    snapshot: &str,
) -> Result<String, Error> {
    let name = names::unique("BOSH");
    let parameters = parameters(properties, tags, snapshot, &name)?;
    let error = match session.ec2().register_image(&parameters).send() {
        Err(error) if error.is("InvalidAMIName.Duplicate") || error.may_have_succeeded() => error,
        outcome => return Ok(outcome?),
    };
    log::warn(format_args!("{error}; searching for the image by its name {name}"));
    match search(session, &name) {
        Ok(Some(id)) => Ok(id),
        Ok(None) => Err(Error::from(error).context(format_args!("registering image {name}"))),
        Err(why) => Err(Error::cloud(format!("{error}; an image named {name} may exist, which is not certain: {why}"))),
    }
}

/// Searches for an image by its name. EC2 may not show a new one everywhere.
fn search(session: &Session, name: &str) -> Result<Option<String>, Error> {
    let query = session.ec2().images_named(name);
    for pause in SEARCH_PAUSES {
        if let Some(id) = query.send()?.into_iter().next() {
            return Ok(Some(id));
        }
        clock::sleep(random::jittered(pause))?;
    }
    Ok(None)
}

fn parameters(properties: &StemcellProperties, tags: &Tags, snapshot: &str, name: &str) -> Result<Value, Error> {
    let description = properties.description();
    let mut tags = tags.clone();
    if let Some(description) = description.as_deref().filter(|_| tags.get("Name").is_none()) {
        tags.insert("Name", description);
    }
    Ok(json!({
        "Name": name,
        "Description": description,
        "Architecture": properties.architecture(),
        "VirtualizationType": properties.virtualization()?,
        "RootDeviceName": ROOT_DEVICE,
        "SriovNetSupport": "simple",
        "EnaSupport": true,
        "BootMode": properties.boot_mode(),
        "BlockDeviceMapping": [
            {"DeviceName": ROOT_DEVICE, "Ebs": {"SnapshotId": snapshot, "DeleteOnTermination": true}},
            {"DeviceName": LOCAL_DEVICE, "VirtualName": "ephemeral0"},
        ],
        "TagSpecification": tags.specification(&["image"]),
    }))
}
