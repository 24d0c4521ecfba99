//! Finds the addresses that belong to this machine.
//!
//! A UDP socket is bound to each address, which succeeds for local addresses. This
//! works in every namespace and after lock-down, and sends nothing.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Reserved for documentation, so no machine has it.
const FOREIGN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Returns those of the addresses that belong to this machine.
pub(super) fn find_in(addresses: &[IpAddr]) -> Vec<IpAddr> {
    // With `ip_nonlocal_bind` a socket can be bound to any address, so only the source
    // address that the kernel chooses shows which one is local.
    let bind_decides = !binds(FOREIGN);
    addresses.iter().copied().filter(|address| (bind_decides && binds(*address)) || sends_from(*address)).collect()
}

#[expect(clippy::disallowed_methods, reason = "nothing is ever sent from this socket")]
fn binds(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Returns true if the kernel sends to this address from the same address, which is so for
/// local ones. Connecting a UDP socket chooses the route and sends nothing.
#[expect(clippy::disallowed_methods, reason = "nothing is ever sent from this socket")]
fn sends_from(address: IpAddr) -> bool {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0));
    let local = socket.and_then(|socket| socket.connect((address, 9)).and_then(|()| socket.local_addr()));
    local.is_ok_and(|local| local.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_local_and_documentation_addresses_are_not() {
        let all: Vec<IpAddr> =
            ["127.0.0.1", "192.0.2.1", "198.51.100.7", "2001:db8::1"].map(|a| a.parse().unwrap()).into();
        assert_eq!(find_in(&all), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        assert!(binds(all[0]) && sends_from(all[0]));
    }
}
