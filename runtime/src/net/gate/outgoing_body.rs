//! The body of a request as it is sent, and its digest. An image streams from the disk.

use super::Gate;
use super::bodies::NO_IMAGE;
use super::message::{GuestBodyPart, ImageContent};
use super::sending::CheckedRequest;
use crate::failure::Who;
use crate::image::{ImageBody, ImageError, ImagePart};
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::SendBody;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use ring::digest::{Context, SHA256};
use std::io;
use tokio::time::timeout_at;
use wasm_cpi_checks::Check;
use wasm_cpi_sigv4::{hex, sha256_hex};

impl Gate {
    /// Returns the body and its length.
    pub(super) async fn body_to_send(&self, checked: &CheckedRequest) -> Result<(SendBody, u64), HttpError> {
        let bytes = |bytes: &Bytes| match bytes.len() as u64 {
            0 => (SendBody::None, 0),
            length => (SendBody::Bytes(bytes.clone()), length),
        };
        match &checked.image {
            None => Ok(bytes(&checked.body)),
            Some(ImageContent::Block(block)) => Ok(bytes(&block.content.bytes)),
            Some(ImageContent::Part(part)) => {
                let (length, pieces) = self.stream_image(part).await?;
                Ok((SendBody::Stream { length, pieces: pieces.boxed() }, length))
            }
            Some(ImageContent::Parts(parts)) => self.stream_parts(parts).await,
        }
    }

    /// Returns the digest of the body as it is sent, in hexadecimal digits. An image is read once more for it.
    pub(super) async fn payload_sha256(&self, checked: &CheckedRequest) -> Result<String, HttpError> {
        match &checked.image {
            None => return Ok(sha256_hex(&checked.body)),
            Some(ImageContent::Block(block)) => return Ok(hex(block.content.sha256.as_ref())),
            Some(ImageContent::Part(_) | ImageContent::Parts(_)) => {}
        }
        let mut digest = Context::new(&SHA256);
        let (SendBody::Stream { mut pieces, .. }, _) = self.body_to_send(checked).await? else {
            return Ok(sha256_hex(b""));
        };
        while let Some(piece) =
            timeout_at(checked.deadline.into(), pieces.next()).await.map_err(|_| no_time_to_read())?
        {
            digest.update(&piece.map_err(|error| unreadable_image(&error))?);
        }
        Ok(hex(digest.finish().as_ref()))
    }

    async fn stream_parts(&self, parts: &[GuestBodyPart]) -> Result<(SendBody, u64), HttpError> {
        let (mut length, mut streams) = (0, Vec::new());
        for part in parts {
            match part {
                GuestBodyPart::Bytes(bytes) if bytes.is_empty() => {}
                GuestBodyPart::Bytes(bytes) => {
                    length += bytes.len() as u64;
                    streams.push(stream::iter([Ok(Bytes::from(bytes.clone()))]).boxed());
                }
                GuestBodyPart::Image(part) => {
                    let (image_length, pieces) = self.stream_image(part).await?;
                    length += image_length;
                    streams.push(pieces.boxed());
                }
            }
        }
        Ok((SendBody::Stream { length, pieces: stream::iter(streams).flatten().boxed() }, length))
    }

    async fn stream_image(&self, part: &ImagePart) -> Result<(u64, ImageBody), HttpError> {
        let image = self.image.as_ref().ok_or_else(|| HttpError::invalid(NO_IMAGE))?;
        image.body(part).await.map_err(|error| invalid_image(&error))
    }
}

/// Returns the error of a request whose image cannot be sent. A guest cannot help it if the file changes or
/// cannot be read.
pub(super) fn invalid_image(error: &ImageError) -> HttpError {
    let check = error.check();
    let who = match (error, check) {
        (ImageError::Io(_), _) | (_, Some(Check::ImageUnchanged)) => Who::Runtime,
        _ => Who::Guest,
    };
    HttpError { check, ..HttpError::failed(who, HttpErrorKind::InvalidRequest, error) }
}

/// Returns the error of an image that could not be read for its signature.
fn unreadable_image(error: &io::Error) -> HttpError {
    match error.get_ref().and_then(|error| error.downcast_ref::<ImageError>()) {
        Some(error) => invalid_image(error),
        None => HttpError::failed(Who::Runtime, HttpErrorKind::InvalidRequest, "the image cannot be read"),
    }
}

fn no_time_to_read() -> HttpError {
    let what = "the image could not be read for its signature within the time of the request; raise its timeout";
    HttpError::failed(Who::Guest, HttpErrorKind::Timeout, what)
}
