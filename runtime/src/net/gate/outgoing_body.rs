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

/// The body of a request that is ready to be sent.
pub(super) struct BodyToSend {
    pub(super) body: SendBody,
    pub(super) length: u64,
    /// The beginning of the image, if one streams from the disk.
    pub(super) image_start: Bytes,
}

impl Gate {
    /// Returns the body.
    pub(super) async fn body_to_send(&self, checked: &CheckedRequest) -> Result<BodyToSend, HttpError> {
        let of_bytes = |bytes: &Bytes| {
            let body = if bytes.is_empty() { SendBody::None } else { SendBody::Bytes(bytes.clone()) };
            BodyToSend { body, length: bytes.len() as u64, image_start: Bytes::new() }
        };
        match &checked.image {
            None => Ok(of_bytes(&checked.body)),
            Some(ImageContent::Block(block)) => Ok(of_bytes(&block.content.bytes)),
            Some(ImageContent::Part(part)) => {
                let (length, image_start, pieces) = self.stream_image(part).await?;
                Ok(BodyToSend { body: SendBody::Stream { length, pieces: pieces.boxed() }, length, image_start })
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
        let SendBody::Stream { mut pieces, .. } = self.body_to_send(checked).await?.body else {
            return Ok(sha256_hex(b""));
        };
        while let Some(piece) =
            timeout_at(checked.deadline.into(), pieces.next()).await.map_err(|_| no_time_to_read())?
        {
            digest.update(&piece.map_err(|error| unreadable_image(&error))?);
        }
        Ok(hex(digest.finish().as_ref()))
    }

    async fn stream_parts(&self, parts: &[GuestBodyPart]) -> Result<BodyToSend, HttpError> {
        let (mut length, mut image_start, mut streams) = (0, Bytes::new(), Vec::new());
        for part in parts {
            match part {
                GuestBodyPart::Bytes(bytes) if bytes.is_empty() => {}
                GuestBodyPart::Bytes(bytes) => {
                    length += bytes.len() as u64;
                    streams.push(stream::iter([Ok(Bytes::from(bytes.clone()))]).boxed());
                }
                GuestBodyPart::Image(part) => {
                    let (image_length, start, pieces) = self.stream_image(part).await?;
                    (length, image_start) = (length + image_length, start);
                    streams.push(pieces.boxed());
                }
            }
        }
        let pieces = stream::iter(streams).flatten().boxed();
        Ok(BodyToSend { body: SendBody::Stream { length, pieces }, length, image_start })
    }

    /// Returns the length, the beginning and the stream of a part of the image.
    async fn stream_image(&self, part: &ImagePart) -> Result<(u64, Bytes, ImageBody), HttpError> {
        let image = self.image.as_ref().ok_or_else(|| HttpError::invalid(NO_IMAGE))?;
        let (length, mut pieces) = image.body(part).await.map_err(|error| invalid_image(&error))?;
        Ok((length, pieces.beginning().await, pieces))
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
