//! Whose files count: those that nobody but this user or root can have written.
//! Links are followed; what they lead to is judged, on the open descriptor.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use wasm_cpi_checks::Check;

/// Whether only this user or root can have written it.
pub fn trusted(owner: u32, mode: u32) -> Result<(), String> {
    let me = rustix::process::geteuid().as_raw();
    if owner != me && owner != 0 {
        return Err(format!("belongs to user {owner}, neither to this user ({me}) nor to root; run `chown` on it"));
    }
    if mode & 0o022 != 0 {
        return Err(format!("is writable by group or others (mode {:o}); run `chmod go-w` on it", mode & 0o777));
    }
    Ok(())
}

/// The mode of an open file that decides about trust, if it may.
pub fn file(metadata: &Metadata) -> Result<u32, String> {
    if !metadata.is_file() {
        return Err("is not a regular file".into());
    }
    if Check::TrustedFile.on() {
        trusted(metadata.uid(), metadata.mode())?;
    }
    Ok(metadata.mode())
}

/// What is read in one go fits with a little to spare, by which its end is seen.
pub fn room(metadata: &Metadata, max_bytes: u64) -> usize {
    usize::try_from(metadata.len().min(max_bytes)).map_or(0, |bytes| bytes + 64)
}

/// Returns the text of a file that decides about trust, and the file's mode.
pub fn read(path: &Path, max_bytes: u64) -> Result<(String, u32), String> {
    // What is no file (a pipe, say) is not waited for.
    let opened = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| format!("{}; check the path and that this user may read it", unreadable(&error)))?;
    let metadata = opened.metadata().map_err(|error| unreadable(&error))?;
    let mode = file(&metadata)?;
    let mut text = String::with_capacity(room(&metadata, max_bytes));
    opened.take(max_bytes + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    if text.len() as u64 > max_bytes {
        let (amount, unit) = if max_bytes < 1 << 20 { (max_bytes >> 10, "KiB") } else { (max_bytes >> 20, "MiB") };
        return Err(format!("is larger than {amount} {unit}"));
    }
    Ok((text, mode))
}

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot be read ({error})")
}
