//! Finds the members of a tar or tar.gz image by reading it once from start to end.
//!
//! Only headers are interpreted. Names are not used as paths, because nothing is unpacked to disk.
//! The `tar` crate reads the fields of a header, but does not bound the memory that an archive can
//! take, so this module reads the sequence of headers itself.

use super::content::{Chunk, Content};
use super::reader::Reader;
use super::{ImageError, unreadable};
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufReader, ErrorKind, Read};
use tar::{GnuExtSparseHeader, GnuSparseHeader, Header};
use wasm_cpi_checks::{Check, RefusedBy};

const BLOCK: usize = 512;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const MAX_MEMBERS: usize = 10_000;
const MAX_NAME: usize = 1024;
/// The most bytes of a header that extends the next one.
const MAX_EXTENSION: u64 = 64 * 1024;
const MAX_CHUNKS: usize = 100_000;

/// The decompressed archive from its current position on.
pub(super) enum TarStream {
    Plain(Reader),
    Gzip(Box<MultiGzDecoder<BufReader<Reader>>>),
}

impl Read for TarStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            TarStream::Plain(reader) => reader.read(buffer),
            TarStream::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

impl TarStream {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        match self {
            TarStream::Plain(reader) => reader.skip(count),
            TarStream::Gzip(decoder) => match io::copy(&mut decoder.take(count), &mut io::sink())? {
                skipped if skipped == count => Ok(()),
                _ => Err(ErrorKind::UnexpectedEof.into()),
            },
        }
    }
}

/// A regular file. The archive is positioned at its first stored byte.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) size: u64,
    /// `None` if the member is stored in a format that is not supported.
    chunks: Option<Vec<Chunk>>,
}

/// An archive that is being read.
pub(super) struct Archive {
    stream: TarStream,
    /// The number of bytes up to the next header.
    to_next: u64,
    /// The first header, which `open` has read already.
    first: Option<[u8; BLOCK]>,
    files: usize,
}

/// The values of extension headers for the next entry.
#[derive(Default)]
struct Extensions {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    /// True if the member is sparse in a pax format.
    sparse: bool,
    sparse_name: Option<Vec<u8>>,
}

/// The form in which the bytes of a member are stored.
enum Storage {
    Plain,
    GnuSparse,
    /// A format that is not supported.
    PaxSparse,
}

impl Archive {
    /// Reads the first header. Rejects a file that is not an archive.
    pub(super) fn open(reader: Reader) -> Result<Archive, ImageError> {
        let mut stream = if reader.starts_with(GZIP_MAGIC).map_err(|error| unreadable(&error))? {
            TarStream::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(64 * 1024, reader))))
        } else {
            TarStream::Plain(reader)
        };
        let first = read_block(&mut stream).ok().flatten().filter(checksum_is_right);
        match first {
            Some(_) => Ok(Archive { stream, to_next: 0, first, files: 0 }),
            None => Err(ImageError::invalid(
                "the stemcell image is not a tar or tar.gz archive; send the whole image, or upload an archive",
            )),
        }
    }

    /// Returns the next regular file, or `None` at the end.
    pub(super) fn next_file(&mut self) -> Result<Option<Entry>, ImageError> {
        self.next_entry().map_err(|error| match error {
            Broken::Invalid(what) => broken(self.files, &what),
            Broken::Refused(what, check) => broken(self.files, &what).refused_by(check),
            Broken::Io(error) if error.raw_os_error().is_some() => unreadable(&error),
            Broken::Io(error) => broken(self.files, &error.to_string()),
        })
    }

    /// Returns the bytes of the entry that `next_file` returned last.
    pub(super) fn into_content(self, entry: Entry) -> Result<Content, ImageError> {
        match entry.chunks {
            Some(chunks) => Ok(Content::new(self.stream, chunks, entry.size)),
            None => Err(ImageError::invalid(format!(
                "member `{}` is a sparse file in pax format, which is not supported; pack the image without `--sparse`",
                entry.name
            ))),
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, Broken> {
        let mut extensions = Extensions::default();
        loop {
            let Some(block) = self.next_header()? else { return Ok(None) };
            let header = Header::from_byte_slice(&block);
            let size = header.entry_size()?;
            let kind = header.as_old().linkflag[0];
            match kind {
                b'L' => {
                    let name = self.extension(size)?;
                    extensions.name = Some(name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec());
                }
                b'x' => extensions.read_pax(&self.extension(size)?)?,
                b'0' | b'\0' | b'7' | b'S' => {
                    let given = extensions.sparse_name.take().or(extensions.name.take());
                    let name = given.unwrap_or_else(|| header.path_bytes().into_owned());
                    let stored = extensions.size.unwrap_or(size);
                    self.skip_after(stored)?;
                    // Old archives mark directories by a slash at the end of the name.
                    if !name.ends_with(b"/") {
                        let storage = match kind {
                            b'S' => Storage::GnuSparse,
                            _ if extensions.sparse => Storage::PaxSparse,
                            _ => Storage::Plain,
                        };
                        return self.file(name, header, storage, stored).map(Some);
                    }
                    extensions = Extensions::default();
                }
                _ => {
                    self.skip_after(extensions.size.unwrap_or(size))?;
                    // Long link names (K) and global headers (g) do not end the headers of an entry.
                    if !matches!(kind, b'K' | b'g') {
                        extensions = Extensions::default();
                    }
                }
            }
        }
    }

    fn file(&mut self, name: Vec<u8>, header: &Header, storage: Storage, stored: u64) -> Result<Entry, Broken> {
        self.files += 1;
        Check::ArchiveBounds
            .ensure(self.files <= MAX_MEMBERS, || Broken::Invalid(format!("it has more than {MAX_MEMBERS} members")))?;
        Check::ArchiveBounds.ensure(name.len() <= MAX_NAME, || {
            Broken::Invalid(format!("the name of a member is longer than {MAX_NAME} bytes"))
        })?;
        let name = String::from_utf8_lossy(&name).into_owned();
        let (size, chunks) = match storage {
            Storage::Plain => (stored, Some(vec![Chunk { offset: 0, length: stored }])),
            Storage::PaxSparse => (stored, None),
            Storage::GnuSparse => {
                let (size, chunks) = self.sparse_map(header, stored)?;
                (size, Some(chunks))
            }
        };
        Ok(Entry { name, size, chunks })
    }

    /// Returns the size of a sparse file in GNU format, and the positions of its stored bytes.
    fn sparse_map(&mut self, header: &Header, stored: u64) -> Result<(u64, Vec<Chunk>), Broken> {
        let wrong = || Broken::Invalid("the map of a sparse member is invalid".into());
        let gnu = header.as_gnu().ok_or_else(wrong)?;
        let size = gnu.real_size()?;
        let mut chunks = Vec::new();
        add_chunks(&mut chunks, &gnu.sparse)?;
        let mut more = gnu.is_extended();
        while more {
            let mut map = GnuExtSparseHeader::new();
            self.stream.read_exact(map.as_mut_bytes())?;
            add_chunks(&mut chunks, &map.sparse)?;
            more = map.is_extended();
            Check::ArchiveBounds.ensure(chunks.len() <= MAX_CHUNKS, || {
                Broken::Invalid(format!("a sparse member has more than {MAX_CHUNKS} ranges"))
            })?;
        }
        let (mut position, mut total) = (0, 0_u64);
        for chunk in &chunks {
            let end = chunk.offset.checked_add(chunk.length).ok_or_else(wrong)?;
            if chunk.offset < position || end > size {
                return Err(wrong());
            }
            position = end;
            total += chunk.length;
        }
        if total == stored { Ok((size, chunks)) } else { Err(wrong()) }
    }

    fn next_header(&mut self) -> Result<Option<[u8; BLOCK]>, Broken> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let to_next = std::mem::take(&mut self.to_next);
        self.stream.skip(to_next)?;
        match read_block(&mut self.stream)? {
            None => Ok(None),
            Some(block) if block.iter().all(|byte| *byte == 0) => Ok(None),
            Some(block) if checksum_is_right(&block) => Ok(Some(block)),
            Some(_) => Err(Broken::Invalid("a header's checksum is invalid".into())),
        }
    }

    /// Returns the content of an extension header.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, Broken> {
        Check::ArchiveBounds.ensure(size <= MAX_EXTENSION, || {
            Broken::Invalid(format!("a header is longer than {MAX_EXTENSION} bytes"))
        })?;
        let mut bytes = vec![0; size as usize];
        self.stream.read_exact(&mut bytes)?;
        self.to_next = padding(size);
        Ok(bytes)
    }

    /// Sets the distance to the next header, after this many stored bytes and their padding.
    fn skip_after(&mut self, stored: u64) -> Result<(), Broken> {
        let with_padding = stored.checked_add(padding(stored));
        self.to_next = with_padding.ok_or_else(|| Broken::Invalid("the size of a member is invalid".into()))?;
        Ok(())
    }
}

impl Extensions {
    /// Reads records of the form `LENGTH KEY=VALUE\n`. LENGTH includes all of the record.
    fn read_pax(&mut self, mut records: &[u8]) -> Result<(), Broken> {
        let wrong = || Broken::Invalid("a pax header is invalid".into());
        while !records.is_empty() {
            let digits = records.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
            let length = std::str::from_utf8(&records[..digits]).ok().and_then(|text| text.parse::<usize>().ok());
            let length = length.filter(|length| (digits + 2..=records.len()).contains(length)).ok_or_else(wrong)?;
            let (record, rest) = records.split_at(length);
            let record = record[digits + 1..].strip_suffix(b"\n").ok_or_else(wrong)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            self.sparse |= key.starts_with(b"GNU.sparse.");
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    self.size = Some(size.ok_or_else(wrong)?);
                }
                b"GNU.sparse.name" => self.sparse_name = Some(value.to_vec()),
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

/// The reason why an archive cannot be read.
enum Broken {
    Invalid(String),
    /// A problem, and the check that refused.
    Refused(String, Check),
    Io(io::Error),
}

impl RefusedBy for Broken {
    fn refused_by(self, check: Check) -> Broken {
        match self {
            Broken::Invalid(what) => Broken::Refused(what, check),
            other => other,
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Io(error)
    }
}

fn broken(files: usize, what: &str) -> ImageError {
    ImageError::invalid(format!(
        "the archive in the stemcell image is broken or truncated after {files} members ({what}); upload the stemcell again"
    ))
}

fn add_chunks(chunks: &mut Vec<Chunk>, ranges: &[GnuSparseHeader]) -> Result<(), Broken> {
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        chunks.push(Chunk { offset: range.offset()?, length: range.length()? });
    }
    Ok(())
}

/// Reads one block; returns `None` at the end.
fn read_block(stream: &mut TarStream) -> io::Result<Option<[u8; BLOCK]>> {
    let mut block = [0; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match stream.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(block))
}

fn checksum_is_right(block: &[u8; BLOCK]) -> bool {
    let sum = |range: std::ops::Range<usize>| block[range].iter().map(|byte| u32::from(*byte)).sum::<u32>();
    // The field of the checksum counts as spaces.
    let expected = sum(0..148) + 8 * u32::from(b' ') + sum(156..BLOCK);
    Header::from_byte_slice(block).cksum().is_ok_and(|checksum| checksum == expected)
}

fn padding(size: u64) -> u64 {
    (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64
}
