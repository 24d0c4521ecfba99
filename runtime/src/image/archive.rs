//! The members of a tar or tar.gz image, found by walking it once.
//!
//! Only headers are interpreted, and names are just names: nothing is ever
//! unpacked to disk. Everything that an archive can make us hold in memory is
//! bounded here, which is why the walk is our own; the fields of a header are
//! read by the `tar` crate.

use super::content::{Chunk, Content};
use super::reader::Reader;
use super::{ImageError, io};
use flate2::bufread::MultiGzDecoder;
use std::io::{self as stdio, BufReader, ErrorKind, Read};
use tar::{GnuExtSparseHeader, GnuSparseHeader, Header};
use wasm_cpi_checks::Check;

const BLOCK: usize = 512;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const MAX_MEMBERS: usize = 10_000;
const MAX_NAME: usize = 1024;
/// Of a header that extends the next one.
const MAX_EXTENSION: u64 = 64 * 1024;
const MAX_CHUNKS: usize = 100_000;

/// The unpacked archive from its current position on.
pub(super) enum Tape {
    Plain(Reader),
    Gzip(Box<MultiGzDecoder<BufReader<Reader>>>),
}

impl Read for Tape {
    fn read(&mut self, buffer: &mut [u8]) -> stdio::Result<usize> {
        match self {
            Tape::Plain(reader) => reader.read(buffer),
            Tape::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

impl Tape {
    fn skip(&mut self, count: u64) -> stdio::Result<()> {
        match self {
            Tape::Plain(reader) => reader.skip(count),
            Tape::Gzip(decoder) => match stdio::copy(&mut decoder.take(count), &mut stdio::sink())? {
                skipped if skipped == count => Ok(()),
                _ => Err(ErrorKind::UnexpectedEof.into()),
            },
        }
    }
}

/// A regular file; the archive stands at its first stored byte.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) size: u64,
    /// None: stored in a way that is not read here.
    chunks: Option<Vec<Chunk>>,
}

pub(super) struct Archive {
    tape: Tape,
    /// Bytes up to the next header.
    to_next: u64,
    first: Option<[u8; BLOCK]>,
    files: usize,
}

/// What extension headers said about the entry that follows.
#[derive(Default)]
struct Extensions {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    /// The member is sparse in one of the pax ways.
    sparse: bool,
    sparse_name: Option<Vec<u8>>,
}

impl Archive {
    pub(super) fn open(reader: Reader) -> Result<Archive, ImageError> {
        let mut tape = if reader.starts_with(GZIP_MAGIC).map_err(|error| io(&error))? {
            Tape::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(64 * 1024, reader))))
        } else {
            Tape::Plain(reader)
        };
        let first = read_block(&mut tape).ok().flatten().filter(checksum_is_right);
        match first {
            Some(_) => Ok(Archive { tape, to_next: 0, first, files: 0 }),
            None => Err(ImageError::Invalid(
                "the stemcell image is no tar or tar.gz archive; send it whole, or upload one that is".into(),
            )),
        }
    }

    pub(super) fn next_file(&mut self) -> Result<Option<Entry>, ImageError> {
        self.walk().map_err(|error| match error {
            Broken::Said(what) => broken(self.files, &what),
            Broken::Reading(error) if error.raw_os_error().is_some() => io(&error),
            Broken::Reading(error) => broken(self.files, &error.to_string()),
        })
    }

    /// The bytes of the entry that `next_file` gave last.
    pub(super) fn into_content(self, entry: Entry) -> Result<Content, ImageError> {
        match entry.chunks {
            Some(chunks) => Ok(Content::new(self.tape, chunks, entry.size)),
            None => Err(ImageError::Invalid(format!(
                "member `{}` is a sparse file in pax format, which is not read; pack the image without `--sparse`",
                entry.name
            ))),
        }
    }

    fn walk(&mut self) -> Result<Option<Entry>, Broken> {
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
                    self.expect(stored)?;
                    // Archives older than directories' own type mark them so.
                    if !name.ends_with(b"/") {
                        return self.file(name, header, kind == b'S', stored, extensions.sparse).map(Some);
                    }
                    extensions = Extensions::default();
                }
                _ => {
                    self.expect(extensions.size.unwrap_or(size))?;
                    // Long link names (K) and global headers (g) stand between an entry's headers.
                    if !matches!(kind, b'K' | b'g') {
                        extensions = Extensions::default();
                    }
                }
            }
        }
    }

    fn file(
        &mut self,
        name: Vec<u8>,
        header: &Header,
        sparse: bool,
        stored: u64,
        pax_sparse: bool,
    ) -> Result<Entry, Broken> {
        self.files += 1;
        if Check::ArchiveBounds.on() && self.files > MAX_MEMBERS {
            return Err(Broken::Said(format!("it has more than {MAX_MEMBERS} members")));
        }
        if Check::ArchiveBounds.on() && name.len() > MAX_NAME {
            return Err(Broken::Said(format!("the name of a member is longer than {MAX_NAME} bytes")));
        }
        let name = String::from_utf8_lossy(&name).into_owned();
        if !sparse {
            let chunks = (!pax_sparse).then(|| vec![Chunk { offset: 0, length: stored }]);
            return Ok(Entry { name, size: stored, chunks });
        }
        let (size, chunks) = self.sparse_map(header, stored)?;
        Ok(Entry { name, size, chunks: Some(chunks) })
    }

    /// Where the stored bytes of a sparse file (GNU format) belong.
    fn sparse_map(&mut self, header: &Header, stored: u64) -> Result<(u64, Vec<Chunk>), Broken> {
        let wrong = || Broken::Said("the map of a sparse member is wrong".into());
        let gnu = header.as_gnu().ok_or_else(wrong)?;
        let size = gnu.real_size()?;
        let mut chunks = Vec::new();
        add_chunks(&mut chunks, &gnu.sparse)?;
        let mut more = gnu.is_extended();
        while more {
            let mut map = GnuExtSparseHeader::new();
            self.tape.read_exact(map.as_mut_bytes())?;
            add_chunks(&mut chunks, &map.sparse)?;
            more = map.is_extended();
            if Check::ArchiveBounds.on() && chunks.len() > MAX_CHUNKS {
                return Err(Broken::Said(format!("a sparse member has more than {MAX_CHUNKS} stretches")));
            }
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
        self.tape.skip(to_next)?;
        match read_block(&mut self.tape)? {
            None => Ok(None),
            Some(block) if block.iter().all(|byte| *byte == 0) => Ok(None),
            Some(block) if checksum_is_right(&block) => Ok(Some(block)),
            Some(_) => Err(Broken::Said("a header's checksum is wrong".into())),
        }
    }

    /// Contents of an extension header.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, Broken> {
        if Check::ArchiveBounds.on() && size > MAX_EXTENSION {
            return Err(Broken::Said(format!("a header is longer than {MAX_EXTENSION} bytes")));
        }
        let mut bytes = vec![0; size as usize];
        self.tape.read_exact(&mut bytes)?;
        self.to_next = padding(size);
        Ok(bytes)
    }

    fn expect(&mut self, stored: u64) -> Result<(), Broken> {
        let with_padding = stored.checked_add(padding(stored));
        self.to_next = with_padding.ok_or_else(|| Broken::Said("the size of a member is wrong".into()))?;
        Ok(())
    }
}

impl Extensions {
    /// Records of the form `LENGTH KEY=VALUE\n`, LENGTH counting all of it.
    fn read_pax(&mut self, mut records: &[u8]) -> Result<(), Broken> {
        let wrong = || Broken::Said("a pax header is wrong".into());
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

enum Broken {
    Said(String),
    Reading(stdio::Error),
}

impl From<stdio::Error> for Broken {
    fn from(error: stdio::Error) -> Self {
        Broken::Reading(error)
    }
}

fn broken(files: usize, what: &str) -> ImageError {
    ImageError::Invalid(format!(
        "the archive in the stemcell image is broken or cut off after {files} members ({what}); upload the stemcell again"
    ))
}

fn add_chunks(chunks: &mut Vec<Chunk>, stretches: &[GnuSparseHeader]) -> Result<(), Broken> {
    for stretch in stretches.iter().filter(|stretch| !stretch.is_empty()) {
        chunks.push(Chunk { offset: stretch.offset()?, length: stretch.length()? });
    }
    Ok(())
}

/// None at the end.
fn read_block(tape: &mut Tape) -> stdio::Result<Option<[u8; BLOCK]>> {
    let mut block = [0; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match tape.read(&mut block[filled..]) {
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
    // Its own field counts as spaces.
    let expected = sum(0..148) + 8 * u32::from(b' ') + sum(156..BLOCK);
    Header::from_byte_slice(block).cksum().is_ok_and(|checksum| checksum == expected)
}

fn padding(size: u64) -> u64 {
    (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64
}
