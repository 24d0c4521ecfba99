//! Randomness from the host.

use crate::host;

/// At most 64 KiB at a time.
pub fn bytes(count: u32) -> Vec<u8> {
    host::current().random(count)
}

/// `count` random bytes as lower-case hex, for names.
pub fn hex(count: u32) -> String {
    bytes(count).iter().map(|byte| format!("{byte:02x}")).collect()
}
