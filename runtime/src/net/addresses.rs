//! The address rule: which addresses a grant may reach.
//!
//! Judged on what a name resolved to, right before connecting to exactly that
//! address. Link-local and metadata addresses can never be granted; addresses of
//! this machine need `allow_local` and the grant's own CIDRs. IPv6 forms that
//! carry an IPv4 address are judged by both. Pure: the caller brings the list of
//! this machine's addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::holes::Check;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Globally routable ones.
    #[default]
    Public,
    /// Exactly these.
    Cidrs(Vec<IpNet>),
}

impl Addresses {
    fn contain(&self, ip: IpAddr) -> bool {
        match self {
            Addresses::Public => !Check::AddressPublic.on() || is_public(ip),
            Addresses::Cidrs(nets) => !Check::AddressCidr.on() || nets.iter().any(|net| net.contains(&ip)),
        }
    }
}

/// May a grant with these `addresses` reach `ip`? `own` are this machine's.
pub fn judge(ip: IpAddr, addresses: &Addresses, allow_local: bool, own: &[IpAddr]) -> Result<(), String> {
    let ip = folded(ip);
    if let Some(what) = never(ip) {
        return Err(format!("{ip} is {what}, which no policy can grant"));
    }
    if is_local(ip, own) {
        let listed = matches!(addresses, Addresses::Cidrs(_)) && addresses.contain(ip);
        return match (allow_local, listed) {
            (true, true) => Ok(()),
            (false, _) => {
                Err(format!("{ip} belongs to this machine; only `allow_local: true` in the config allows that"))
            }
            (true, false) => {
                Err(format!("{ip} belongs to this machine; list it in the grant's `addresses`, as a CIDR"))
            }
        };
    }
    if !addresses.contain(ip) {
        return Err(match addresses {
            Addresses::Public => {
                format!("{ip} is not globally routable; a grant reaches it only if its `addresses` list a CIDR with it")
            }
            Addresses::Cidrs(_) => format!("{ip} is in none of the CIDRs in the grant's `addresses`"),
        });
    }
    for inner in embedded(ip).into_iter().filter(|_| Check::AddressEmbedded.on()) {
        let inner = IpAddr::V4(inner);
        let refused = never(inner).is_some() || is_local(inner, own);
        if refused || !(is_public(inner) || addresses.contain(inner)) {
            return Err(format!("{ip} carries the IPv4 address {inner}, which the grant does not reach"));
        }
    }
    Ok(())
}

/// What an address is that no policy can grant.
pub fn never(ip: IpAddr) -> Option<&'static str> {
    NEVER.iter().find(|(net, _)| Check::AddressNever.on() && net.contains(&folded(ip))).map(|(_, what)| *what)
}

/// The same for a whole network: nothing in it could be reached.
pub fn never_net(net: &IpNet) -> Option<&'static str> {
    NEVER.iter().find(|(forbidden, _)| Check::AddressNever.on() && forbidden.contains(net)).map(|(_, what)| *what)
}

pub fn is_loopback_net(net: &IpNet) -> bool {
    match net {
        IpNet::V4(net) => v4(127, 0, 0, 0, 8).contains(&IpNet::V4(*net)),
        IpNet::V6(net) => net.prefix_len() == 128 && net.addr().is_loopback(),
    }
}

fn is_local(ip: IpAddr, own: &[IpAddr]) -> bool {
    Check::AddressOwn.on() && (ip.is_loopback() || own.iter().any(|one| one.to_canonical() == ip))
}

/// An IPv4 address that is written as IPv6, as what it is.
fn folded(ip: IpAddr) -> IpAddr {
    if Check::AddressMapped.on() { ip.to_canonical() } else { ip }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix))
}

const fn v6(s: [u16; 8], prefix: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]), prefix))
}

const LINK_LOCAL: &str = "a link-local address";
const METADATA: &str = "a metadata address";
const MULTICAST: &str = "a multicast address";
const NOWHERE: &str = "no address of a host";

const NEVER: &[(IpNet, &str)] = &[
    (v4(0, 0, 0, 0, 8), NOWHERE),
    (v4(255, 255, 255, 255, 32), "the broadcast address"),
    (v4(169, 254, 0, 0, 16), LINK_LOCAL),
    (v4(224, 0, 0, 0, 4), MULTICAST),
    (v4(168, 63, 129, 16, 32), METADATA),
    (v4(100, 100, 100, 200, 32), METADATA),
    (v4(192, 0, 0, 192, 32), METADATA),
    (v6([0; 8], 128), NOWHERE),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), LINK_LOCAL),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), MULTICAST),
    (v6([0xfd00, 0x0e_c2, 0, 0, 0, 0, 0, 0], 32), METADATA),
    (v6([0xfd00, 0x00c1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128), METADATA),
    (v6([0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x0042], 128), METADATA),
    (v6([0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254], 128), METADATA),
];

/// The special-purpose IPv4 networks of RFC 6890 that are not globally routable.
/// IPv6 works the other way round: `IPV6_PUBLIC` minus `IPV6_SPECIAL`.
const IPV4_SPECIAL: &[IpNet] = &[
    v4(0, 0, 0, 0, 8),       // this network
    v4(10, 0, 0, 0, 8),      // private use
    v4(100, 64, 0, 0, 10),   // shared address space
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link local
    v4(172, 16, 0, 0, 12),   // private use
    v4(192, 0, 0, 0, 24),    // IETF protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 88, 99, 0, 24),  // 6to4 relays, deprecated
    v4(192, 168, 0, 0, 16),  // private use
    v4(198, 18, 0, 0, 15),   // benchmarking
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, broadcast
];

const IPV6_PUBLIC: &[IpNet] = &[
    v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), // global unicast
    NAT64,
];

const IPV6_SPECIAL: &[IpNet] = &[
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),     // IETF protocol assignments, Teredo
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),     // documentation
    SIX_TO_FOUR,
];

const NAT64: IpNet = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);
const NAT64_LOCAL: IpNet = v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48);
const SIX_TO_FOUR: IpNet = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);
const TEREDO: IpNet = v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32);
const V4_COMPATIBLE: IpNet = v6([0; 8], 96);
const V4_TRANSLATED: IpNet = v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96);

fn is_public(ip: IpAddr) -> bool {
    let within = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&ip));
    never(ip).is_none()
        && match ip {
            IpAddr::V4(_) => !within(IPV4_SPECIAL),
            IpAddr::V6(_) => within(IPV6_PUBLIC) && !within(IPV6_SPECIAL),
        }
}

/// Where packets to these addresses may end up: there, and at what they carry.
pub fn ends(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let canonical = addresses.iter().map(IpAddr::to_canonical);
    canonical.flat_map(|ip| std::iter::once(ip).chain(embedded(ip).into_iter().map(IpAddr::V4))).collect()
}

/// The IPv4 addresses that packets to this IPv6 address may end up at.
fn embedded(ip: IpAddr) -> Vec<Ipv4Addr> {
    let IpAddr::V6(v6) = ip else { return Vec::new() };
    let s = v6.segments();
    let at = |high: usize| Ipv4Addr::from(u32::from(s[high]) << 16 | u32::from(s[high + 1]));
    if SIX_TO_FOUR.contains(&ip) {
        vec![at(1)]
    } else if TEREDO.contains(&ip) {
        vec![at(2), Ipv4Addr::from(!u32::from(at(6)))]
    } else if [NAT64, NAT64_LOCAL, V4_COMPATIBLE, V4_TRANSLATED].iter().any(|net| net.contains(&ip)) {
        vec![at(6)]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
