//! The address rule: which IP addresses a grant may reach.
//!
//! The caller resolves a name, asks [`judge`] about each address, and connects to exactly
//! the address that was judged. Link-local and metadata addresses can never be granted.
//! An address of this machine is allowed only if the config sets `allow_local` and the
//! grant lists the address in a CIDR. An IPv6 address that carries an IPv4 address is
//! allowed only if both are. The caller passes in the list of this machine's addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use wasm_cpi_checks::Check;

/// The addresses that one grant or login may reach, as the operator wrote them in `addresses`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Every public address, which means a globally routable one; this is the default.
    #[default]
    Public,
    /// Only addresses in these networks, which may be private ones.
    Cidrs(Vec<IpNet>),
}

impl Addresses {
    fn contain(&self, ip: IpAddr) -> bool {
        match self {
            Addresses::Public => Check::AddressPublic.accepts(is_public(ip)),
            Addresses::Cidrs(nets) => Check::AddressCidr.accepts(nets.iter().any(|net| net.contains(&ip))),
        }
    }
}

/// The reason why a grant may not reach an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressDenial {
    /// No policy can grant the address.
    Never {
        /// The address.
        ip: IpAddr,
        /// What it is, such as "a metadata address".
        what: &'static str,
    },
    /// The address is one of this machine, and the config does not allow such addresses.
    LocalClosed(IpAddr),
    /// The address is one of this machine, and the grant does not list it in a CIDR.
    LocalNotListed(IpAddr),
    /// The grant is for public addresses, and this one is not.
    NotPublic(IpAddr),
    /// The grant lists CIDRs, and the address is in none of them.
    NotListed(IpAddr),
    /// The address leads to an IPv4 address that the grant may not reach.
    Embedded {
        /// The IPv6 address.
        ip: IpAddr,
        /// The IPv4 address to which a gateway may forward.
        inner: Ipv4Addr,
    },
}

/// Shows the cause and, if there is one, the remedy.
impl fmt::Display for AddressDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remedy() {
            Some(remedy) => write!(f, "{}; {remedy}", self.cause()),
            None => f.write_str(&self.cause()),
        }
    }
}

impl AddressDenial {
    /// Returns why the address may not be reached.
    pub fn cause(&self) -> String {
        match self {
            AddressDenial::Never { ip, what } => format!("{ip} is {what}, which no policy can grant"),
            AddressDenial::LocalClosed(ip) => {
                format!("{ip} belongs to this machine; only `allow_local: true` in the config allows that")
            }
            AddressDenial::LocalNotListed(ip) => {
                format!("{ip} belongs to this machine, and is in none of the networks in `addresses`")
            }
            AddressDenial::NotPublic(ip) => format!("{ip} is not a public address"),
            AddressDenial::NotListed(ip) => format!("{ip} is in none of the networks in `addresses`"),
            AddressDenial::Embedded { ip, inner } => {
                format!("{ip} carries the IPv4 address {inner}, which may not be reached")
            }
        }
    }

    /// Returns what the operator can do, if `addresses` can allow the address.
    pub fn remedy(&self) -> Option<String> {
        match self {
            AddressDenial::LocalNotListed(ip) | AddressDenial::NotPublic(ip) | AddressDenial::NotListed(ip) => {
                let all = if ip.is_ipv4() { 32 } else { 128 };
                Some(format!(
                    "list \"{ip}/{all}\", or the network of the cloud, in `addresses` of the grant or login, or, if a \
                     preset has it, in `addresses` of the entry in `presets`"
                ))
            }
            AddressDenial::Never { .. } | AddressDenial::LocalClosed(_) | AddressDenial::Embedded { .. } => None,
        }
    }

    /// Returns the check that refuses the address.
    pub fn check(&self) -> Check {
        match self {
            AddressDenial::Never { .. } => Check::AddressNever,
            AddressDenial::LocalClosed(_) | AddressDenial::LocalNotListed(_) => Check::AddressOwn,
            AddressDenial::NotPublic(_) => Check::AddressPublic,
            AddressDenial::NotListed(_) => Check::AddressCidr,
            AddressDenial::Embedded { .. } => Check::AddressEmbedded,
        }
    }
}

/// Decides whether a grant with these `addresses` may reach `ip`.
///
/// `allow_local` is the setting of the config, and `own` lists this machine's addresses
/// (loopback addresses need not be in it). Rejects addresses that no policy can grant,
/// addresses of this machine that are not allowed in both places, addresses outside of
/// `addresses`, and IPv6 addresses that lead to an IPv4 address the grant does not reach.
///
/// ```
/// use wasm_cpi_policy::addresses::{Addresses, judge};
///
/// let private = Addresses::Cidrs(vec!["10.0.0.0/8".parse().unwrap()]);
/// assert!(judge("10.0.0.5".parse().unwrap(), &private, false, &[]).is_ok());
/// assert!(judge("10.0.0.5".parse().unwrap(), &Addresses::Public, false, &[]).is_err());
/// // No policy can grant the metadata service.
/// assert!(judge("169.254.169.254".parse().unwrap(), &Addresses::Public, true, &[]).is_err());
/// ```
pub fn judge(ip: IpAddr, addresses: &Addresses, allow_local: bool, own: &[IpAddr]) -> Result<(), AddressDenial> {
    let ip = folded(ip);
    if let Some(what) = never(ip) {
        return Err(AddressDenial::Never { ip, what });
    }
    if is_local(ip, own) {
        let listed = matches!(addresses, Addresses::Cidrs(_)) && addresses.contain(ip);
        return match (allow_local, listed) {
            (true, true) => Ok(()),
            (false, _) => Err(AddressDenial::LocalClosed(ip)),
            (true, false) => Err(AddressDenial::LocalNotListed(ip)),
        };
    }
    if !addresses.contain(ip) {
        return Err(match addresses {
            Addresses::Public => AddressDenial::NotPublic(ip),
            Addresses::Cidrs(_) => AddressDenial::NotListed(ip),
        });
    }
    for inner in embedded(ip) {
        let v4 = IpAddr::V4(inner);
        let refused = never(v4).is_some() || is_local(v4, own);
        if Check::AddressEmbedded.refuses(refused || !(is_public(v4) || addresses.contain(v4))) {
            return Err(AddressDenial::Embedded { ip, inner });
        }
    }
    Ok(())
}

/// Returns a description such as "a metadata address" if no policy can grant this address.
pub fn never(ip: IpAddr) -> Option<&'static str> {
    NEVER.iter().find(|(net, _)| Check::AddressNever.refuses(net.contains(&folded(ip)))).map(|(_, what)| *what)
}

/// Returns such a description if every address of the network is one that no policy can grant.
pub fn never_net(net: &IpNet) -> Option<&'static str> {
    NEVER.iter().find(|(forbidden, _)| Check::AddressNever.refuses(forbidden.contains(net))).map(|(_, what)| *what)
}

/// Returns true if the network holds nothing but loopback addresses.
pub fn is_loopback_net(net: &IpNet) -> bool {
    match net {
        IpNet::V4(net) => v4(127, 0, 0, 0, 8).contains(&IpNet::V4(*net)),
        IpNet::V6(net) => net.prefix_len() == 128 && net.addr().is_loopback(),
    }
}

fn is_local(ip: IpAddr, own: &[IpAddr]) -> bool {
    Check::AddressOwn.refuses(ip.is_loopback() || own.iter().any(|one| one.to_canonical() == ip))
}

/// Returns the IPv4 address that an IPv4-mapped IPv6 address stands for, and any other address as it is.
fn folded(ip: IpAddr) -> IpAddr {
    Check::AddressMapped.choose(ip.to_canonical(), ip)
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
const NOWHERE: &str = "an address that no host has";

/// Networks that no policy can grant, each with a description.
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
/// For IPv6 the lists name what is routable: `IPV6_PUBLIC` without `IPV6_SPECIAL`.
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

/// Returns every address at which packets to `addresses` may arrive: the addresses in
/// canonical form, and the IPv4 addresses that IPv6 addresses among them carry.
pub fn ends(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let canonical = addresses.iter().map(IpAddr::to_canonical);
    canonical.flat_map(|ip| std::iter::once(ip).chain(embedded(ip).into_iter().map(IpAddr::V4))).collect()
}

/// Returns the IPv4 addresses to which a gateway may forward packets for this IPv6 address.
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
