//! The stamp of a file: metadata that show without hashing whether the file has changed.

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The longest wait, in milliseconds, for the next tick of a file system's clock.
const MAX_WAIT_MS: u32 = 50;

/// A file's time that is further in the future than this is not waited for: the clock was set back.
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
    /// later time. Does not wait if the file's time is more than a second in the future.
    pub fn wait_past_clock_tick(&self) {
        let age = || {
            let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE);
            now.map_or(i128::MIN, |now| ns(now.tv_sec(), now.tv_nsec()) - self.ctime_ns)
        };
        for _ in 0..MAX_WAIT_MS {
            if age() > 0 || age() < -FUTURE_NS {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns when the content was last written (mtime), in nanoseconds since 1970, by the clock of the
    /// file system.
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
