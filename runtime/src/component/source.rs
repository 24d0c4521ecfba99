//! Reads a guest's file once, so that the bytes that are hashed are the bytes that are compiled.

use crate::component::signature::Signature;
use crate::failure::Failure;
use crate::limits::Limits;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wasm_cpi_checks::Check;

/// The longest wait, in milliseconds, for the next tick of a file system's clock.
const TICKS_TO_WAIT: u32 = 50;

/// If a file's time is further in the future, because the clock was set back, nothing waits for it.
const FUTURE_NS: i128 = 1_000_000_000;

/// The metadata of a file that show without hashing that the file is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    mtime_ns: i128,
    ctime_ns: i128,
}

impl Stamp {
    /// Returns the stamp of the file at a path, without opening it.
    pub fn of(path: &Path) -> Option<Stamp> {
        std::fs::metadata(path).ok().map(|metadata| Stamp::from(&metadata))
    }

    /// Returns true if the file is unchanged since `stored`, a stamp that was stored at that time.
    /// Clocks of file systems tick slowly, and a change within the same tick would not show. So
    /// the file must have changed before the stamp was stored.
    pub fn is_unchanged_since(&self, stored: &Stamp, stored_at_ns: i128) -> bool {
        self == stored && self.ctime_ns < stored_at_ns
    }

    /// Waits for the next tick of the file system's clock, so that a file written afterwards has a
    /// later time. Does not wait if the file's time is in the future.
    pub fn wait_past_clock_tick(&self) {
        let age = || {
            let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE);
            now.map_or(i128::MIN, |now| ns(now.tv_sec(), now.tv_nsec()) - self.ctime_ns)
        };
        for _ in 0..TICKS_TO_WAIT {
            if age() > 0 || age() < -FUTURE_NS {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn written_ns(&self) -> i128 {
        self.mtime_ns
    }
}

impl From<&std::fs::Metadata> for Stamp {
    fn from(metadata: &std::fs::Metadata) -> Self {
        Stamp {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.size(),
            mtime_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

fn ns(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

/// A guest's file, and the digest that it must have.
pub struct PinnedGuest {
    pub path: PathBuf,
    /// The digest in lower-case hex.
    pub sha256: String,
    /// The keys that must have signed the digest, if the config demands signatures.
    pub signature: Option<Signature>,
}

/// The content of a guest's file, its digest and its stamp.
pub struct Source {
    pub bytes: Vec<u8>,
    pub sha256: String,
    pub stamp: Stamp,
}

/// Reads a guest's file, without comparing its digest with a pin.
pub fn read(path: &Path, limits: &Limits) -> Result<Source, Failure> {
    let failed = |what: String| Failure::config(format!("guest {}: {what}", path.display()));
    let mut file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| failed(format!("cannot be read ({error}); check `guest.path`")))?;
    let metadata = file.metadata().map_err(|error| failed(format!("cannot be read ({error}); check its disk")))?;
    if !metadata.is_file() {
        return Err(failed("is not a regular file; check `guest.path`".into()));
    }
    let max = limits.wasm_mib << 20;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(max)).unwrap_or(0) + 1);
    let read = Read::by_ref(&mut file).take(max + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(format!("cannot be read ({error}); check its disk")))?;
    if bytes.len() as u64 > max {
        return Err(Failure::limit("wasm_mib", limits.wasm_mib, format_args!("the guest's file {}", path.display())));
    }
    let sha256 = hex(&Sha256::digest(&bytes));
    Ok(Source { bytes, sha256, stamp: Stamp::from(&metadata) })
}

/// Reads the configured guest. Rejects a file that does not match its pin.
pub fn read_pinned(guest: &PinnedGuest, limits: &Limits) -> Result<Source, Failure> {
    let source = read(&guest.path, limits)?;
    Check::Pin.ensure(source.sha256 == guest.sha256, || {
        Failure::config(format!(
            "guest {}: its sha256 is {}, but `guest.sha256` pins {}; if you trust the new file, change the pin",
            guest.path.display(),
            source.sha256,
            guest.sha256
        ))
    })?;
    Ok(source)
}

/// Returns true for 64 digits of lower-case hex.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
