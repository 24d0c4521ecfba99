//! Creates an image and uploads its data. The guest chooses the ID of the image, so
//! that it is known even if the answer gets lost. A failure leaves no image.

use std::time::Duration;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::{Cid, Error, clock, http, log};

use crate::api::{Images, create_once, may_have_succeeded, retry_while_busy};
use crate::names;
use crate::session::Session;

/// The number of uploads, if they are interrupted.
const UPLOAD_ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

pub(super) fn upload(session: &Session, mut body: Map<String, Value>, member: &str) -> Result<Cid, Error> {
    let images = session.images()?;
    let wanted = names::uuid();
    body.insert("id".to_owned(), json!(wanted));
    let body = Value::Object(body);
    let id = match create_once(&format!("image {wanted}"), || images.create(&body), || images.image(&wanted)) {
        Ok(image) => image.id,
        // Its ID is known, whether it exists or not.
        Err(error) if may_have_succeeded(&error) => return Err(delete_after(&images, &wanted, error.into())),
        Err(error) => return Err(error.into()),
    };
    let uploaded = send_data(session, &images, &id, member).and_then(|()| wait_until_active(session, &images, &id));
    match uploaded {
        Ok(()) => Ok(id),
        Err(error) => {
            Err(delete_after(&images, &id, error.context(format_args!("uploading the stemcell to image `{id}`"))))
        }
    }
}

/// Deletes the image and returns the error.
fn delete_after(images: &Images, id: &str, error: Error) -> Error {
    match retry_while_busy(|| images.delete(id)) {
        Ok(_) => error,
        Err(left) => {
            Error::cloud(format!("{error}; image `{id}` is left in the cloud, because deleting it failed: {left}"))
        }
    }
}

fn send_data(session: &Session, images: &Images, id: &str, member: &str) -> Result<(), Error> {
    let mut left = UPLOAD_ATTEMPTS;
    loop {
        left -= 1;
        let error = match images.upload(id, member) {
            Err(error) if is_transient(&error) => error,
            outcome => return outcome.map_err(Error::from),
        };
        log::warn(format_args!("{error}; checking the image"));
        let pause = clock::sleep(PAUSE);
        match wait_until_saved(session, images, id)?.as_str() {
            "active" | "importing" => return Ok(()),
            // Glance sets this status if an upload is interrupted.
            "queued" if left > 0 && pause.is_ok() => {}
            _ => return Err(error.into()),
        }
    }
}

/// Returns the status of the image after Glance saved it: that may take long after
/// the answer got lost.
fn wait_until_saved(session: &Session, images: &Images, id: &str) -> Result<String, Error> {
    session.poll().until(&format!("image `{id}` to be saved"), || {
        let status = images.image(id)?.map(|image| image.status).unwrap_or_default();
        Ok((!matches!(status.as_str(), "saving" | "uploading")).then_some(status))
    })
}

/// Returns true if another upload can succeed. After a 401 the host has a new token
/// for it; the host itself cannot send a stream twice.
fn is_transient(error: &http::RequestError) -> bool {
    may_have_succeeded(error)
        || !error.sent() && error.denial().is_none()
        || matches!(error.status(), Some(401 | 409 | 429))
}

fn wait_until_active(session: &Session, images: &Images, id: &str) -> Result<(), Error> {
    session.poll().until(&format!("image `{id}` to be active"), || {
        let image =
            images.image(id)?.ok_or_else(|| Error::cloud(format!("image `{id}` disappeared while it was uploaded")))?;
        match image.status.as_str() {
            "active" => Ok(Some(())),
            "killed" | "deleted" | "pending_delete" | "deactivated" => Err(Error::cloud(format!(
                "image `{id}` failed: expected status `active`, found `{}`; look at Glance's log, and upload the stemcell \
                 again",
                image.status
            ))),
            _ => Ok(None),
        }
    })
}
