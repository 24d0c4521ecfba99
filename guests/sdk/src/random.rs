//! Random bytes from the host.
//!
//! ```
//! use wasm_cpi_sdk::{fake::Fake, random};
//!
//! let _host = Fake::new().install();
//! let (one, other) = (format!("vm-{}", random::hex(8)), format!("vm-{}", random::hex(8)));
//! assert_eq!(one.len(), "vm-".len() + 16);
//! assert_ne!(one, other);
//! ```

use std::time::Duration;

use crate::host;

/// Returns `count` random bytes, and at most 64 KiB.
pub fn bytes(count: u32) -> Vec<u8> {
    host::current().random(count)
}

/// Returns `count` random bytes as lower-case hex, for names.
pub fn hex(count: u32) -> String {
    bytes(count).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a random time from half of `time` up to `time`, in whole milliseconds. Pauses of this length keep
/// calls that began together from asking together.
pub fn jittered(time: Duration) -> Duration {
    let half = time / 2;
    let random = bytes(4).into_iter().fold(0, |number, byte| (number << 8) | u32::from(byte));
    let share = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).saturating_mul(u64::from(random)) >> 32;
    time - half + Duration::from_millis(share)
}
