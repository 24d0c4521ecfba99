//! The stemcell image of a `create_stemcell` call.
//!
//! The file is opened once, at the start of the call, and then read by position, so that several
//! readers do not affect each other and the path is not used again. At most a few chunks of it are
//! in memory, and no format other than tar and gzip is interpreted. Long operations run on their
//! own thread, which ends when its result is no longer needed.

mod archive;
mod blocks;
mod content;
mod open;
mod reader;
mod stamp;
mod stream;

pub use blocks::{BlockContent, BlockCut, ImageBlock, ImageBlocks};
pub use stream::ImageBody;

use crate::failure::Failure;
use archive::Archive;
use content::Content;
use reader::{Reader, Stop};
use ring::digest::{Context, SHA256};
use stamp::ImageStamp;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wasm_cpi_checks::{Check, RefusedBy};

/// The most bytes that one read returns.
pub const MAX_READ: u32 = 1024 * 1024;

/// The part of the image to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImagePart {
    /// The file as it is.
    Whole,
    /// One file in the image, which is an archive.
    Member(String),
}

/// A regular file in an image that is an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub size: u64,
}

/// The reason why reading the image fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The guest asks for a part that does not exist or cannot be read.
    #[error("{message}")]
    Invalid {
        message: String,
        /// The check that refused, if it is a named one.
        check: Option<Check>,
    },
    /// The file cannot be read.
    #[error("{0}")]
    Io(String),
}

impl ImageError {
    fn invalid(message: impl Into<String>) -> ImageError {
        ImageError::Invalid { message: message.into(), check: None }
    }

    /// Returns the check that refused, if one did.
    pub fn check(&self) -> Option<Check> {
        match self {
            ImageError::Invalid { check, .. } => *check,
            ImageError::Io(_) => None,
        }
    }
}

impl RefusedBy for ImageError {
    fn refused_by(self, check: Check) -> ImageError {
        match self {
            ImageError::Invalid { message, check: known } => {
                ImageError::Invalid { message, check: known.or(Some(check)) }
            }
            other => other,
        }
    }
}

/// The open image. All clones use the same open file.
#[derive(Clone)]
pub struct Image(Arc<OpenImage>);

struct OpenImage {
    file: Arc<File>,
    size: u64,
    sha256: OnceLock<String>,
    members: OnceLock<Vec<Member>>,
}

/// A part of the image that is about to be read.
struct Source {
    reader: Box<dyn Read + Send>,
    length: u64,
    stamp: ImageStamp,
    stop: Stop,
}

impl Image {
    /// Opens a regular file. Links are not followed. The file must be in one of `image_dirs`, unless
    /// that list is empty.
    pub fn open(path: &Path, image_dirs: &[PathBuf]) -> Result<Image, Failure> {
        let (file, size) = open::open(path, image_dirs)?;
        let (sha256, members) = (OnceLock::new(), OnceLock::new());
        Ok(Image(Arc::new(OpenImage { file: Arc::new(file), size, sha256, members })))
    }

    /// Returns the size at the start of the call. Bytes that are appended later are not read.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Reads at most `MAX_READ` bytes, and fewer at the end of the file.
    pub fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, ImageError> {
        check_length(length)?;
        let size = self.size();
        Check::ImageRange.ensure(offset <= size, || {
            ImageError::invalid(format!(
                "offset {offset} is beyond the end of the image, which has {size} bytes; read within its size"
            ))
        })?;
        let end = size.min(offset + u64::from(length));
        read_all(Reader::new(self.0.file.clone(), offset, end, Stop::default()), length)
    }

    /// Returns the SHA-256 digest of the whole file in lower-case hex.
    pub async fn sha256(&self) -> Result<String, ImageError> {
        if let Some(digest) = self.0.sha256.get() {
            return Ok(digest.clone());
        }
        let stop = Stop::default();
        let mut reader = self.reader(stop.clone());
        let digest = stream::run_on_thread(stop, move || {
            let mut hasher = Context::new(&SHA256);
            let mut chunk = vec![0; stream::CHUNK];
            loop {
                match reader.read(&mut chunk).map_err(|error| unreadable(&error))? {
                    0 => break,
                    count => hasher.update(&chunk[..count]),
                }
            }
            Ok(hasher.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        })
        .await?;
        Ok(self.0.sha256.get_or_init(|| digest).clone())
    }

    /// Returns the regular files of a tar or tar.gz image, in the order of the archive.
    pub async fn members(&self) -> Result<Vec<Member>, ImageError> {
        if let Some(members) = self.0.members.get() {
            return Ok(members.clone());
        }
        let stop = Stop::default();
        let reader = self.reader(stop.clone());
        let members = stream::run_on_thread(stop, move || {
            let mut archive = Archive::open(reader)?;
            let mut members = Vec::new();
            while let Some(entry) = archive.next_file()? {
                members.push(Member { name: entry.name, size: entry.size });
            }
            Ok(members)
        })
        .await?;
        Ok(self.0.members.get_or_init(|| members).clone())
    }

    /// Returns the first bytes of a member, at most `MAX_READ`. If several members have the name, it
    /// reads the first one.
    pub async fn read_member(&self, name: &str, length: u32) -> Result<Vec<u8>, ImageError> {
        check_length(length)?;
        let (stop, name) = (Stop::default(), name.to_owned());
        let reader = self.reader(stop.clone());
        stream::run_on_thread(stop, move || read_all(find(reader, &name)?, length)).await
    }

    /// Returns the length and the bytes of a part, for a request body. Every body has its own
    /// position, and dropping it stops its thread.
    pub async fn body(&self, part: &ImagePart) -> Result<(u64, ImageBody), ImageError> {
        let Source { reader, length, stamp, stop } = self.source(part).await?;
        Ok((length, ImageBody::start(reader, length, stamp, stop)?))
    }

    /// Returns the length of a part, and the part cut into blocks.
    pub async fn blocks(&self, part: &ImagePart, cut: BlockCut) -> Result<(u64, ImageBlocks), ImageError> {
        let Source { reader, length, stamp, stop } = self.source(part).await?;
        Ok((length, ImageBlocks::start(reader, length, cut, stamp, stop)?))
    }

    async fn source(&self, part: &ImagePart) -> Result<Source, ImageError> {
        let stop = Stop::default();
        let stamp = ImageStamp::of(&self.0.file).map_err(|error| unreadable(&error))?;
        let reader = self.reader(stop.clone());
        match part {
            ImagePart::Whole => Ok(Source { reader: Box::new(reader), length: self.size(), stamp, stop }),
            ImagePart::Member(name) => {
                // One reader finds and sends the member, so that a compressed image is decompressed
                // only once.
                let name = name.clone();
                let content = stream::run_on_thread(stop.clone(), move || find(reader, &name)).await?;
                let length = content.size();
                Ok(Source { reader: Box::new(content), length, stamp, stop })
            }
        }
    }

    fn reader(&self, stop: Stop) -> Reader {
        Reader::new(self.0.file.clone(), 0, self.size(), stop)
    }
}

fn find(reader: Reader, name: &str) -> Result<Content, ImageError> {
    let mut archive = Archive::open(reader)?;
    let mut others = Vec::new();
    while let Some(entry) = archive.next_file()? {
        if entry.name == name {
            return archive.into_content(entry);
        }
        others.push(entry.name);
    }
    let shown = others.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let more = if others.len() > 5 { format!(" and {} more", others.len() - 5) } else { String::new() };
    Err(ImageError::invalid(format!("the image has no member `{name}`; its members are: {shown}{more}")))
}

fn check_length(length: u32) -> Result<(), ImageError> {
    Check::ImageReadSize.ensure(length <= MAX_READ, || {
        ImageError::invalid(format!("{length} bytes are too many for one read; read at most {MAX_READ} bytes at once"))
    })
}

fn read_all(source: impl Read, length: u32) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    source.take(u64::from(length)).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    Ok(bytes)
}

fn unreadable(error: &std::io::Error) -> ImageError {
    ImageError::Io(format!("the stemcell image cannot be read: {error}; check the file and its disk, and try again"))
}

#[cfg(test)]
mod tests;
