//! The archive of a stemcell image: members and contents must be those that the `tar`
//! crate finds.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};
use wasm_cpi::fuzzing::{Image, Member};

const BLOCK: usize = 512;
const LENGTH: u32 = 4096;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| directory().join(format!("wasm-cpi-fuzz-{}.tar", std::process::id())));

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime starts"));

/// Returns a directory in memory if there is one, as the file is written very often.
fn directory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// The input has options in its first line (`z`: gzip, `c`: correct the checksums), and
/// then the archive.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(end) = data.iter().take(8).position(|byte| *byte == b'\n') else { return };
    let (options, archive) = (&data[..end], &data[end + 1..]);
    let mut archive = archive.to_vec();
    if options.contains(&b'c') {
        correct_checksums(&mut archive);
    }
    let packed = if options.contains(&b'z') { gzip(&archive) } else { archive.clone() };
    fs::write(&*FILE, &packed).expect("there is room for a small file");
    let image = Image::open(&FILE, &[]).expect("the image is a regular file");
    // The image stays open. Removing the file now leaves nothing behind, even after a crash.
    let _ = fs::remove_file(&*FILE);
    let whole = image.read(0, LENGTH).expect("the image can be read");
    assert_eq!(whole, packed[..packed.len().min(LENGTH as usize)]);
    let Ok(members) = RUNTIME.block_on(image.members()) else { return };
    assert!(members.len() <= 10_000 && members.iter().all(|member| member.name.len() <= 3 * 1024));
    let archive = if packed.starts_with(&[0x1f, 0x8b]) { unpacked(&packed) } else { archive };
    check(&image, &members, &archive);
}

fn check(image: &Image, members: &[Member], archive: &[u8]) {
    let Some(expected) = tar_members(archive) else { return };
    let found: Vec<(&str, u64)> = members.iter().map(|member| (member.name.as_str(), member.size)).collect();
    let listed: Vec<(&str, u64)> = expected.iter().map(|member| (member.name.as_str(), member.size)).collect();
    assert_eq!(found, listed);
    for (at, member) in expected.iter().enumerate().take(3) {
        // Of several members with the same name, the first one is read.
        if expected[..at].iter().any(|before| before.name == member.name) {
            continue;
        }
        if let Ok(content) = RUNTIME.block_on(image.read_member(&member.name, LENGTH)) {
            assert_eq!(content, member.content, "{}", member.name);
        }
    }
}

struct TarMember {
    name: String,
    size: u64,
    content: Vec<u8>,
}

/// Returns the regular files that the `tar` crate finds, or None if it fails.
fn tar_members(archive: &[u8]) -> Option<Vec<TarMember>> {
    let mut files = Vec::new();
    for entry in tar::Archive::new(archive).entries().ok()? {
        let mut entry = entry.ok()?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        // Long names end at the first NUL, like short ones; the `tar` crate removes only a final one.
        let name = name.split('\0').next().unwrap_or_default().to_owned();
        let kind = entry.header().entry_type();
        // The `tar` crate ignores these types unless the header is GNU's, or ustar's of version 00.
        if kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions() {
            return None;
        }
        if !(kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()) || name.ends_with('/') {
            continue;
        }
        let (size, mut content) = (entry.size(), Vec::new());
        entry.by_ref().take(u64::from(LENGTH)).read_to_end(&mut content).ok()?;
        files.push(TarMember { name, size, content });
    }
    Some(files)
}

/// Writes the right checksum into every block that looks like a header, as the fuzzer
/// cannot guess it.
fn correct_checksums(archive: &mut [u8]) {
    for (at, block) in archive.chunks_exact_mut(BLOCK).enumerate() {
        if at == 0 || &block[257..262] == b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory succeeds")
}

/// Returns the content as far as it can be decompressed.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let _ = flate2::bufread::MultiGzDecoder::new(bytes).take(1 << 20).read_to_end(&mut unpacked);
    unpacked
}
