//! The form of cloud IDs. The probe keeps no state: an object exists if its cloud ID
//! has the form of the probe's own IDs.

/// The cloud IDs of one kind of object: `PREFIX-`, followed by letters, digits, `.`,
/// `_` or `-`.
pub(crate) struct Shape(&'static str);

pub(crate) const STEMCELL: Shape = Shape("stemcell-");
pub(crate) const VM: Shape = Shape("vm-");
pub(crate) const DISK: Shape = Shape("disk-");
pub(crate) const SNAPSHOT: Shape = Shape("snapshot-");
pub(crate) const NETWORK: Shape = Shape("network-");

/// The prefix of cloud IDs that hold the outcomes of a script, and of cloud IDs that
/// hold a script.
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

/// Returns the size in MiB that `create_disk` wrote into a disk's ID.
pub(crate) fn disk_size(disk: &str) -> Option<u64> {
    disk.strip_prefix(DISK.0)?.split('-').next()?.parse().ok()
}

/// Returns the FNV-1a hash of a text.
pub(crate) fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_the_own_form_are_accepted() {
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
    fn the_size_is_read_from_the_id_of_a_disk() {
        assert_eq!(disk_size("disk-1024-ab"), Some(1024));
        assert_eq!(disk_size("disk-x"), None);
        assert_eq!(disk_size("vm-1"), None);
    }
}
