//! The stemcell image of a `create_stemcell` call.
//!
//! Opened once, at the start of the call, and read by position from then on, so
//! that several readers never disturb each other and the path is of no further
//! interest. Nothing here holds more than a few chunks of it in memory, and
//! nothing takes it apart further than tar and gzip. What may take long runs on
//! a thread of its own, which ends when nobody waits for it any more.

mod archive;
mod content;
mod open;
mod reader;
mod stream;

pub use stream::ImageBody;

use crate::failure::Failure;
use archive::Archive;
use content::Content;
use reader::{Reader, Stop};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wasm_cpi_checks::Check;

/// The most that one read hands out.
pub const MAX_READ: u32 = 1024 * 1024;

/// What to send of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImagePart {
    /// The file as it is.
    Whole,
    /// One file of the archive that the image is.
    Member(String),
}

/// A regular file in the archive that the image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The reader asked for what is not there.
    #[error("{0}")]
    Invalid(String),
    /// The file cannot be read.
    #[error("{0}")]
    Io(String),
}

/// Cheap to clone: all clones are the same open file.
#[derive(Clone)]
pub struct Image(Arc<Opened>);

struct Opened {
    file: Arc<File>,
    size: u64,
    sha256: OnceLock<String>,
    members: OnceLock<Vec<Member>>,
}

impl Image {
    /// Opens a regular file; a link is not followed. `image_dirs` narrows where
    /// it may lie; empty means anywhere.
    pub fn open(path: &Path, image_dirs: &[PathBuf]) -> Result<Image, Failure> {
        let (file, size) = open::open(path, image_dirs)?;
        let (sha256, members) = (OnceLock::new(), OnceLock::new());
        Ok(Image(Arc::new(Opened { file: Arc::new(file), size, sha256, members })))
    }

    /// As it was when the call began; later growth is not seen.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// At most `MAX_READ` bytes; fewer at the end of the file.
    pub fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, ImageError> {
        check_length(length)?;
        if Check::ImageRange.on() && offset > self.size() {
            return Err(ImageError::Invalid(format!(
                "offset {offset} is beyond the end of the image, which has {} bytes",
                self.size()
            )));
        }
        let end = self.size().min(offset + u64::from(length));
        read_all(Reader::new(self.0.file.clone(), offset, end, Stop::default()), length)
    }

    /// SHA-256 of the whole file in lower-case hex.
    pub async fn sha256(&self) -> Result<String, ImageError> {
        if let Some(digest) = self.0.sha256.get() {
            return Ok(digest.clone());
        }
        let stop = Stop::default();
        let mut reader = self.reader(stop.clone());
        let digest = stream::off_thread(stop, move || {
            let mut hasher = Sha256::new();
            let mut chunk = vec![0; stream::CHUNK];
            loop {
                match reader.read(&mut chunk).map_err(|error| io(&error))? {
                    0 => break,
                    count => hasher.update(&chunk[..count]),
                }
            }
            Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        })
        .await?;
        Ok(self.0.sha256.get_or_init(|| digest).clone())
    }

    /// Regular files of a tar or tar.gz image, in its order.
    pub async fn members(&self) -> Result<Vec<Member>, ImageError> {
        if let Some(members) = self.0.members.get() {
            return Ok(members.clone());
        }
        let stop = Stop::default();
        let reader = self.reader(stop.clone());
        let members = stream::off_thread(stop, move || {
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

    /// The first bytes of a member, at most `MAX_READ`. Of several members with
    /// one name it is the first.
    pub async fn read_member(&self, name: &str, length: u32) -> Result<Vec<u8>, ImageError> {
        check_length(length)?;
        let (stop, name) = (Stop::default(), name.to_owned());
        let reader = self.reader(stop.clone());
        stream::off_thread(stop, move || read_all(find(reader, &name)?, length)).await
    }

    /// Length and bytes of a part, for a request body. Every body has its own
    /// position, and dropping it ends its reading.
    pub async fn body(&self, part: &ImagePart) -> Result<(u64, ImageBody), ImageError> {
        let stop = Stop::default();
        let reader = self.reader(stop.clone());
        match part {
            ImagePart::Whole => Ok((self.size(), ImageBody::start(reader, self.size(), stop)?)),
            ImagePart::Member(name) => {
                // One reader for search and sending: a compressed image is
                // unpacked once.
                let name = name.clone();
                let content = stream::off_thread(stop.clone(), move || find(reader, &name)).await?;
                let length = content.size();
                Ok((length, ImageBody::start(content, length, stop)?))
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
    Err(ImageError::Invalid(format!("the image has no member `{name}`; its members are: {shown}{more}")))
}

fn check_length(length: u32) -> Result<(), ImageError> {
    match length {
        _ if length <= MAX_READ || !Check::ImageReadSize.on() => Ok(()),
        _ => Err(ImageError::Invalid(format!("{length} bytes at once are too many; at most {MAX_READ} are read"))),
    }
}

fn read_all(source: impl Read, length: u32) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    source.take(u64::from(length)).read_to_end(&mut bytes).map_err(|error| io(&error))?;
    Ok(bytes)
}

fn io(error: &std::io::Error) -> ImageError {
    ImageError::Io(format!("reading the stemcell image failed: {error}"))
}

#[cfg(test)]
mod tests;
