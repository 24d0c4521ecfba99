//! Heavy stemcells: the root disk in the stemcell's archive becomes a snapshot by EBS direct, and the snapshot an image.
//! That works from any machine, and needs no volume.

use std::time::Duration;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::image::{self as archive, Member};
use wasm_cpi_sdk::{Cid, Error, log};

use super::image;
use super::properties::StemcellProperties;
use super::registration;
use crate::api::ebs::Started;
use crate::encryption::Encryption;
use crate::session::Session;
use crate::snapshot;
use crate::tags::Tags;

/// The file of the root disk in the archive.
const ROOT_IMAGE: &str = "root.img";

/// The minutes after which EBS cancels a snapshot that is not completed.
const CANCELLED_AFTER_MINUTES: u64 = 60;

/// How long EBS may take for a snapshot that has all its blocks.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The longest description of a snapshot.
const MAX_DESCRIPTION: usize = 255;

pub(super) fn create(session: &Session, properties: &StemcellProperties, tags: &Tags) -> Result<Cid, Error> {
    properties.virtualization()?;
    let encryption = properties.encryption(session)?;
    let member = root_image()?;
    let body = snapshot_body(session, properties, tags, &encryption, &member);
    let started = start(session, &body)?;
    let mut image = None;
    match fill(session, &started, &member).and_then(|()| register(session, properties, tags, &started.id, &mut image)) {
        Ok(id) => Ok(id),
        Err(error) => {
            log::warn(format_args!("creating a stemcell failed: {error}; deleting its snapshot {}", started.id));
            let left = undo(session, image.as_deref(), &started.id).err();
            let left = left.map(|left| {
                format!(
                    "; it may be left in the cloud, because deleting it failed: {left} (EBS cancels snapshot `{}` after \
                     {CANCELLED_AFTER_MINUTES} minutes unless it is completed)",
                    started.id
                )
            });
            Err(Error::new(error.kind, format!("creating a stemcell: {}{}", error.message, left.unwrap_or_default())))
        }
    }
}

/// Starts the snapshot. If it may have been started without an answer, it is deleted.
fn start(session: &Session, body: &Value) -> Result<Started, Error> {
    let ebs = session.ebs();
    ebs.start_snapshot(body).map_err(|error| {
        // With the same token, the answer to another request names the snapshot of the first one.
        let undo = || snapshot::delete(session, &ebs.start_snapshot(body)?.id);
        let left = if error.may_have_succeeded() { undo().err() } else { None };
        let left = left.map(|left| {
            format!("; a snapshot may be left in the cloud, which EBS cancels after {CANCELLED_AFTER_MINUTES} minutes: {left}")
        });
        let error = Error::from(error);
        Error::new(error.kind, format!("{}{}", error.message, left.unwrap_or_default()))
    })
}

fn root_image() -> Result<Member, Error> {
    let found = archive::members()?.into_iter().find(|member| member.name.trim_start_matches("./") == ROOT_IMAGE);
    found.ok_or_else(|| Error::cpi(format!("the stemcell's archive has no file {ROOT_IMAGE}; use a stemcell for AWS")))
}

/// Returns the body of `StartSnapshot`.
fn snapshot_body(
    session: &Session,
    properties: &StemcellProperties,
    tags: &Tags,
    encryption: &Encryption,
    member: &Member,
) -> Value {
    let gib = member.size.div_ceil(1 << 30).max(properties.disk_mib().div_ceil(1024)).max(1);
    let description = properties.description().unwrap_or_else(|| "BOSH stemcell".to_owned());
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    set("VolumeSize", json!(gib));
    set("Description", json!(description.chars().take(MAX_DESCRIPTION).collect::<String>()));
    set("Timeout", json!(CANCELLED_AFTER_MINUTES));
    set("ClientToken", json!(session.tokens.token("stemcell snapshot")));
    if !tags.is_empty() {
        set("Tags", tags.list());
    }
    if encryption.encrypted {
        set("Encrypted", json!(true));
        if let Some(key) = &encryption.key {
            set("KmsKeyArn", json!(key));
        }
    }
    Value::Object(body)
}

/// Writes the root disk into the snapshot, and completes it.
fn fill(session: &Session, started: &Started, member: &Member) -> Result<(), Error> {
    let block = u64::from(started.block_bytes);
    if block == 0 || !member.size.is_multiple_of(block) {
        return Err(Error::cpi(format!(
            "{} of the stemcell's archive has {} bytes, but EBS takes whole blocks of {block} bytes; use a stemcell whose root disk \
             is a multiple of that",
            member.name, member.size
        )));
    }
    let ebs = session.ebs();
    let blocks = ebs.put_blocks(started, &member.name)?;
    log::info(format_args!(
        "snapshot {}: {} blocks sent, {} blocks of zeros left out",
        started.id, blocks.sent, blocks.skipped
    ));
    ebs.complete_snapshot(&started.id, &blocks)?;
    snapshot::wait_until_completed(session, &started.id, SNAPSHOT_TIMEOUT)
}

/// Registers the snapshot as an image, and waits until it is available. `image` is the image that exists.
fn register(
    session: &Session,
    properties: &StemcellProperties,
    tags: &Tags,
    snapshot: &str,
    image: &mut Option<String>,
) -> Result<Cid, Error> {
    let id = registration::register(session, properties, tags, snapshot)?;
    *image = Some(id.clone());
    image::wait_until_available(session, &id)?;
    Ok(id)
}

fn undo(session: &Session, image: Option<&str>, snapshot: &str) -> Result<(), Error> {
    if let Some(image) = image {
        image::deregister(session, image)?;
    }
    snapshot::delete(session, snapshot)
}
