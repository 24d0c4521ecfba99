//! Random bytes from the host.

use crate::host;

/// Returns `count` random bytes, and at most 64 KiB.
pub fn bytes(count: u32) -> Vec<u8> {
    host::current().random(count)
}

/// Returns `count` random bytes as lower-case hex, for names.
pub fn hex(count: u32) -> String {
    bytes(count).iter().map(|byte| format!("{byte:02x}")).collect()
}
