//! Builds tar archives, valid and malformed.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use tar::EntryType;

const BLOCK: usize = 512;

/// Returns a header block with a correct checksum.
pub fn header(name: &str, kind: EntryType, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    // The field is written directly, as the library rejects some names that tests need.
    let bytes = name.as_bytes();
    let field = &mut header.as_old_mut().name;
    let length = bytes.len().min(field.len());
    field[..length].copy_from_slice(&bytes[..length]);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// Returns a header followed by its content, padded to whole blocks.
pub fn entry(name: &str, kind: EntryType, content: &[u8]) -> Vec<u8> {
    let padding = vec![0; (BLOCK - content.len() % BLOCK) % BLOCK];
    [header(name, kind, content.len() as u64), content.to_vec(), padding].concat()
}

/// Returns an archive of regular files.
pub fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let entries = members.iter().flat_map(|(name, content)| entry(name, EntryType::Regular, content));
    with_end_marker(entries.collect())
}

/// Appends the two empty blocks that end an archive.
pub fn with_end_marker(entries: Vec<u8>) -> Vec<u8> {
    [entries, vec![0; 2 * BLOCK]].concat()
}

/// Overwrites part of a header and corrects its checksum.
pub fn patch_header(mut header: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    header[at..at + bytes.len()].copy_from_slice(bytes);
    header[148..156].fill(b' ');
    let sum: u64 = header[..BLOCK].iter().map(|byte| u64::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Returns a pax header with these records (`LENGTH KEY=VALUE\n`).
pub fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let record = |(key, value): &(&str, &str)| {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len();
        while length.to_string().len() + rest.len() != length {
            length = length.to_string().len() + rest.len();
        }
        format!("{length}{rest}").into_bytes()
    };
    entry("pax", EntryType::XHeader, &records.iter().flat_map(record).collect::<Vec<u8>>())
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_else(|error| panic!("gzip: {error}"))
}
