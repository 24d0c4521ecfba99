//! Which addresses are this machine's own.
//!
//! The kernel is asked about one address at a time, by binding a socket to it:
//! that works in every namespace and behind every lock-down, and sends nothing.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Reserved for documentation, so no machine has it.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

pub(super) fn among(addresses: &[IpAddr]) -> Vec<IpAddr> {
    // Where the kernel binds to anything (`ip_nonlocal_bind`), only the address
    // that it would send from tells.
    let telling = !binds(NOBODY);
    addresses.iter().copied().filter(|address| (telling && binds(*address)) || sends_from(*address)).collect()
}

#[expect(clippy::disallowed_methods, reason = "nothing is ever sent from this socket")]
fn binds(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// A machine talks to its own address from that address. Connecting a UDP
/// socket chooses the route and sends nothing.
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
    fn loopback_is_own_and_documentation_is_not() {
        let all: Vec<IpAddr> =
            ["127.0.0.1", "192.0.2.1", "198.51.100.7", "2001:db8::1"].map(|a| a.parse().unwrap()).into();
        assert_eq!(among(&all), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
        assert!(binds(all[0]) && sends_from(all[0]));
    }
}
