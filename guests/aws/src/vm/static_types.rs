//! What bosh-aws-cpi knows about instance types without asking EC2: the disks of older types, the families with NVMe
//! devices, and sizes to choose from. Newer types are described by EC2 itself.

/// The disks of the host: the type, the size of one in GiB, and their number.
const DISKS: [(&str, u64, usize); 60] = [
    ("m1.small", 160, 1),
    ("m1.medium", 410, 1),
    ("m1.large", 420, 2),
    ("m1.xlarge", 420, 4),
    ("c1.medium", 350, 1),
    ("c1.xlarge", 420, 4),
    ("cc2.8xlarge", 840, 4),
    ("cg1.4xlarge", 840, 2),
    ("m2.xlarge", 420, 1),
    ("m2.2xlarge", 850, 1),
    ("m2.4xlarge", 840, 2),
    ("cr1.8xlarge", 120, 2),
    ("hi1.4xlarge", 1024, 2),
    ("hs1.8xlarge", 2000, 24),
    ("m3.medium", 4, 1),
    ("m3.large", 32, 1),
    ("m3.xlarge", 40, 2),
    ("m3.2xlarge", 80, 2),
    ("c3.large", 16, 2),
    ("c3.xlarge", 40, 2),
    ("c3.2xlarge", 80, 2),
    ("c3.4xlarge", 160, 2),
    ("c3.8xlarge", 320, 2),
    ("r3.large", 32, 1),
    ("r3.xlarge", 80, 1),
    ("r3.2xlarge", 160, 1),
    ("r3.4xlarge", 320, 1),
    ("r3.8xlarge", 320, 2),
    ("g2.2xlarge", 60, 1),
    ("g2.8xlarge", 120, 2),
    ("i2.xlarge", 800, 1),
    ("i2.2xlarge", 800, 2),
    ("i2.4xlarge", 800, 4),
    ("i2.8xlarge", 800, 8),
    ("i3.large", 475, 1),
    ("i3.xlarge", 950, 1),
    ("i3.2xlarge", 1900, 1),
    ("i3.4xlarge", 1900, 2),
    ("i3.8xlarge", 1900, 4),
    ("i3.16xlarge", 1900, 8),
    ("i3.metal", 1900, 8),
    ("i3en.large", 1250, 1),
    ("i3en.xlarge", 2500, 1),
    ("i3en.2xlarge", 2500, 2),
    ("i3en.3xlarge", 7500, 1),
    ("i3en.6xlarge", 7500, 2),
    ("i3en.12xlarge", 7500, 4),
    ("i3en.24xlarge", 7500, 8),
    ("i3en.metal", 7500, 8),
    ("d2.xlarge", 2000, 3),
    ("d2.2xlarge", 2000, 6),
    ("d2.4xlarge", 2000, 12),
    ("d2.8xlarge", 2000, 24),
    ("x1.16xlarge", 1920, 1),
    ("x1.32xlarge", 1920, 2),
    ("x1e.xlarge", 120, 1),
    ("x1e.2xlarge", 240, 1),
    ("x1e.4xlarge", 480, 1),
    ("x1e.8xlarge", 960, 1),
    ("x1e.16xlarge", 1920, 1),
];

/// The families whose local disks are NVMe devices, among those of [`DISKS`].
const NVME_DISKS: [&str; 2] = ["i3", "i3en"];

/// The families whose EBS volumes are not NVMe devices. All others run on Nitro.
const XEN: [&str; 25] = [
    "c1", "c3", "c4", "cc1", "cc2", "cg1", "cr1", "d2", "f1", "g2", "g3", "g3s", "h1", "hi1", "hs1", "i2", "i3", "m1",
    "m2", "m3", "m4", "p2", "p3", "r3", "r4",
];
const XEN_MORE: [&str; 4] = ["t1", "t2", "x1", "x1e"];

/// Returns the size in GiB of a local disk and the number of local disks of an older type.
pub(super) fn local_disks(kind: &str) -> Option<(u64, usize)> {
    DISKS.iter().find(|(name, ..)| *name == kind).map(|(_, size, count)| (*size, *count))
}

/// Returns true if the local disks of an older type are NVMe devices.
pub(super) fn has_nvme_disks(kind: &str) -> bool {
    NVME_DISKS.contains(&family(kind))
}

/// Returns true if EBS volumes are NVMe devices in instances of this type.
pub(crate) fn has_nvme_volumes(kind: &str) -> bool {
    let family = family(kind);
    // The bare-metal size of i3 is the only one of its family that runs on Nitro.
    kind == "i3.metal" || !(XEN.contains(&family) || XEN_MORE.contains(&family))
}

fn family(kind: &str) -> &str {
    kind.split('.').next().unwrap_or_default()
}

/// A type to choose from: its name, its CPUs and its memory in MiB.
pub(super) struct Size {
    pub(super) name: String,
    pub(super) cpus: u64,
    pub(super) memory_mib: u64,
}

/// Returns common types in the order in which they are tried, the smallest first.
pub(super) fn sizes() -> Vec<Size> {
    let small = [("t3.nano", 512), ("t3.micro", 1024), ("t3.small", 2048)];
    let mut sizes: Vec<Size> =
        small.map(|(name, memory_mib)| Size { name: name.to_owned(), cpus: 2, memory_mib }).into();
    for (size, cpus) in
        [("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("12xlarge", 48), ("24xlarge", 96)]
    {
        for (family, gib_per_cpu) in [("c5", 2), ("m5", 4), ("r5", 8)] {
            sizes.push(Size { name: format!("{family}.{size}"), cpus, memory_mib: cpus * gib_per_cpu * 1024 });
        }
    }
    sizes
}
