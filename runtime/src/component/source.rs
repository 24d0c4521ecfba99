//! Reads a guest's file once, so that the bytes that are hashed are the bytes that are compiled.

use crate::component::digest::hex;
use crate::component::signature::RequiredSignatures;
use crate::component::stamp::Stamp;
use crate::failure::Failure;
use crate::limits::Limits;
use ring::digest::{SHA256, digest};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;

/// A guest's file, and the digest that it must have.
pub struct PinnedGuest {
    pub path: PathBuf,
    /// The digest in lower-case hex.
    pub sha256: String,
    /// The keys that must have signed the digest, if the config demands signatures.
    pub signature: Option<RequiredSignatures>,
}

/// The content of a guest's file, its digest and its stamp.
pub struct GuestFile {
    pub bytes: Vec<u8>,
    pub sha256: String,
    pub stamp: Stamp,
}

/// Reads a guest's file, without comparing its digest with a pin.
pub fn read(path: &Path, limits: &Limits) -> Result<GuestFile, Failure> {
    read_or_advise(path, limits, "check the path")
}

/// Reads a guest's file. `remedy` is the advice if there is no such file.
fn read_or_advise(path: &Path, limits: &Limits, remedy: &str) -> Result<GuestFile, Failure> {
    let failed = |what: String| Failure::config(format!("guest {}: {what}", path.display()));
    let mut file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| failed(format!("cannot be read ({error}); {remedy}")))?;
    let metadata = file.metadata().map_err(|error| failed(format!("cannot be read ({error}); check its disk")))?;
    if !metadata.is_file() {
        return Err(failed(format!("is not a regular file; {remedy}")));
    }
    let max = limits.wasm_mib << 20;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(max)).unwrap_or(0) + 1);
    let read = Read::by_ref(&mut file).take(max + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(format!("cannot be read ({error}); check its disk")))?;
    if bytes.len() as u64 > max {
        return Err(Failure::limit("wasm_mib", limits.wasm_mib, format_args!("the guest's file {}", path.display())));
    }
    let sha256 = hex(digest(&SHA256, &bytes).as_ref());
    Ok(GuestFile { bytes, sha256, stamp: Stamp::from(&metadata) })
}

/// Reads the configured guest. Rejects a file that does not match its pin.
pub fn read_pinned(guest: &PinnedGuest, limits: &Limits) -> Result<GuestFile, Failure> {
    let remedy = "check `guest.path`, or `guest.package` and `guest.file`";
    let file = read_or_advise(&guest.path, limits, remedy)?;
    Check::Pin.ensure(file.sha256 == guest.sha256, || {
        Failure::config(format!(
            "guest {}: its sha256 is {}, but `guest.sha256` pins {}; if you trust the new file, change the pin",
            guest.path.display(),
            file.sha256,
            guest.sha256
        ))
    })?;
    Ok(file)
}
