//! IP addresses that requests may reach, and how names become addresses.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const AddressNever: Entry = refusal(
    "address-never",
    "The address is a link-local, metadata, multicast or other address that no policy can grant.",
    "The operator checks the DNS record or the grant that names the address.",
);
pub(crate) const AddressOwn: Entry = refusal(
    "address-own",
    "The address belongs to this machine, where servers trust local clients.",
    "For a local test cloud the operator sets `allow_local` in the config and lists the address in the grant.",
);
pub(crate) const AddressPublic: Entry = refusal(
    "address-public",
    "The address is not a public one, and the grant or login lists no networks.",
    "The operator lists the network of the address in `addresses` of the grant or login, or of the entry in `presets`.",
);
pub(crate) const AddressCidr: Entry = refusal(
    "address-cidr",
    "The address is in none of the networks that the grant or login lists.",
    "The operator adds the network of the address to `addresses` of the grant or login, or of the entry in `presets`.",
);
pub(crate) const AddressMapped: Entry =
    safeguard("address-mapped", "An IPv4 address that is written as IPv6 is judged as IPv4.");
pub(crate) const AddressEmbedded: Entry = refusal(
    "address-embedded",
    "The IPv6 address leads to an IPv4 address that the grant does not reach.",
    "The operator grants the network of the IPv4 address, too, or checks the DNS record.",
);
pub(crate) const ResolveOnce: Entry =
    safeguard("resolve-once", "A name is resolved once, and only the judged addresses are connected to.");
pub(crate) const LocalhostName: Entry =
    safeguard("localhost-name", "The name localhost means this machine, whatever DNS answers for it.");
pub(crate) const DnsOwner: Entry = safeguard("dns-owner", "Records of other names in an answer of DNS are not used.");
