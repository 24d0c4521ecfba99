//! Makes an image and fills it. The image's ID is chosen here, so that a lost
//! answer hides nothing; whatever fails leaves no image behind.

use std::time::Duration;

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::{Cid, Error, clock, http, log};

use crate::api::{Images, once, patiently, unclear};
use crate::names;
use crate::session::Session;

/// An upload that broke off is begun again this often.
const UPLOADS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

pub(super) fn upload(session: &Session, mut body: Map<String, Value>, member: &str) -> Result<Cid, Error> {
    let images = session.images()?;
    let wanted = names::uuid();
    body.insert("id".to_owned(), json!(wanted));
    let body = Value::Object(body);
    let id = match once(&format!("image {wanted}"), || images.create(&body), || images.image(&wanted)) {
        Ok(image) => image.id,
        // Its id is known whatever became of it.
        Err(error) if unclear(&error) => return Err(deleted(&images, &wanted, error.into())),
        Err(error) => return Err(error.into()),
    };
    let filled = fill(session, &images, &id, member).and_then(|()| wait_until_active(session, &images, &id));
    match filled {
        Ok(()) => Ok(id),
        Err(error) => Err(deleted(&images, &id, error.context(format_args!("uploading the stemcell to image `{id}`")))),
    }
}

/// The error, once the image is away.
fn deleted(images: &Images, id: &str, error: Error) -> Error {
    match patiently(|| images.delete(id)) {
        Ok(_) => error,
        Err(left) => Error::cloud(format!("{error}; and deleting image `{id}` failed: {left}")),
    }
}

fn fill(session: &Session, images: &Images, id: &str, member: &str) -> Result<(), Error> {
    let mut left = UPLOADS;
    loop {
        left -= 1;
        let error = match images.upload(id, member) {
            Err(error) if passes(&error) => error,
            outcome => return outcome.map_err(Error::from),
        };
        log::warn(format_args!("{error}; looking at the image"));
        let pause = clock::sleep(PAUSE);
        match settled(session, images, id)?.as_str() {
            "active" | "importing" => return Ok(()),
            // Glance puts an image back to this when an upload breaks off.
            "queued" if left > 0 && pause.is_ok() => {}
            _ => return Err(error.into()),
        }
    }
}

/// What the image became: Glance may be at the data long after the answer got lost.
fn settled(session: &Session, images: &Images, id: &str) -> Result<String, Error> {
    session.poll().until(&format!("image `{id}` to be saved"), || {
        let status = images.image(id)?.map(|image| image.status).unwrap_or_default();
        Ok((!matches!(status.as_str(), "saving" | "uploading")).then_some(status))
    })
}

/// 401: the host cannot send a stream twice, but has a new token for the next.
fn passes(error: &http::Error) -> bool {
    unclear(error) || !error.sent() && error.denial().is_none() || matches!(error.status(), Some(401 | 409 | 429))
}

fn wait_until_active(session: &Session, images: &Images, id: &str) -> Result<(), Error> {
    session.poll().until(&format!("image `{id}` to be active"), || {
        let image = images.image(id)?.ok_or_else(|| Error::cloud(format!("image `{id}` is gone")))?;
        match image.status.as_str() {
            "active" => Ok(Some(())),
            "killed" | "deleted" | "pending_delete" | "deactivated" => {
                Err(Error::cloud(format!("image `{id}` became {}", image.status)))
            }
            _ => Ok(None),
        }
    })
}
