//! Ids that are never repeated.

use std::time::SystemTime;

/// Makes ids. Those of two clouds differ, even in one process.
pub(crate) struct Ids {
    seed: String,
    count: u64,
}

impl Ids {
    pub(crate) fn new() -> Ids {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ids { seed: format!("{}.{}", std::process::id(), since.as_nanos()), count: 0 }
    }

    /// Returns 32 hexadecimal digits that were not used before.
    pub(crate) fn hex(&mut self) -> String {
        self.count += 1;
        blake3::hash(format!("{}.{}", self.seed, self.count).as_bytes()).to_hex()[..32].to_owned()
    }

    /// Returns a new UUID of version 4.
    pub(crate) fn uuid(&mut self) -> String {
        let hex = self.hex();
        format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }
}
