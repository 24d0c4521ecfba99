//! The shapes of cloud IDs. The probe keeps no state: what looks like one of
//! its own exists, everything else does not.

/// The cloud IDs of one kind of thing: `PREFIX-` and letters, digits, `.`, `_`
/// or `-`.
pub(crate) struct Shape(&'static str);

pub(crate) const STEMCELL: Shape = Shape("stemcell-");
pub(crate) const VM: Shape = Shape("vm-");
pub(crate) const DISK: Shape = Shape("disk-");
pub(crate) const SNAPSHOT: Shape = Shape("snapshot-");
pub(crate) const NETWORK: Shape = Shape("network-");

/// What the cloud ID of something that a script made begins with; scripts in
/// cloud IDs begin the same way.
pub(crate) const SCRIPTED: &str = "probe:";

impl Shape {
    pub(crate) fn make(&self, rest: impl std::fmt::Display) -> String {
        format!("{}{rest}", self.0)
    }

    pub(crate) fn accepts(&self, cid: &str) -> bool {
        let plain = |rest: &str| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        cid.strip_prefix(self.0).is_some_and(plain) || cid.starts_with(SCRIPTED)
    }
}

/// The size that `create_disk` wrote into a disk's ID.
pub(crate) fn disk_size(disk: &str) -> Option<u64> {
    disk.strip_prefix(DISK.0)?.split('-').next()?.parse().ok()
}

/// A short name for a text of any length: FNV-1a.
pub(crate) fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_shapes_are_accepted() {
        for (cid, accepted) in [
            ("vm-1", true),
            ("vm-af63dc4c8601ec8c", true),
            ("probe:W10", true),
            ("vm-", false),
            ("vm", false),
            ("disk-1", false),
            ("i-0123", false),
            ("vm-a/b", false),
            ("", false),
        ] {
            assert_eq!(VM.accepts(cid), accepted, "{cid}");
        }
    }

    #[test]
    fn a_disk_knows_its_size() {
        assert_eq!(disk_size("disk-1024-ab"), Some(1024));
        assert_eq!(disk_size("disk-x"), None);
        assert_eq!(disk_size("vm-1"), None);
    }
}
