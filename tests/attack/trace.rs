//! Reads every packet of the near namespace from a packet socket. The packets show
//! which addresses were contacted, whatever the runtime and the guest report.

use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, recv, socket, sockopt};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tests::skip;

/// All protocols, in network order.
const EVERYTHING: u32 = (0x0003_u16).to_be() as u32;

/// The size of the receive buffer, for packets that a busy machine reads late.
const BUFFER: usize = 128 << 20;

/// Our own datagrams go to this address. They mark a position in the stream of packets.
const MARKER: (Ipv4Addr, u16) = (Ipv4Addr::new(127, 0, 99, 99), 9);

const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// An attempt to contact an address: the first packet of a connection, a datagram,
/// or a packet of any other protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Contact {
    /// The port is 0 for protocols without ports.
    pub(crate) to: SocketAddr,
    pub(crate) transport: Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    /// The number of another protocol.
    Other(u8),
}

#[derive(Default)]
struct Seen {
    contacts: BTreeSet<Contact>,
    marks: u64,
}

#[derive(Clone)]
pub(crate) struct Trace {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    marker: Arc<UdpSocket>,
}

impl Trace {
    /// Starts to trace the network namespace of this thread.
    pub(crate) fn start() -> Result<Trace, String> {
        let failed = |error: &dyn std::fmt::Display| format!("packets cannot be traced: {error}");
        let protocol = NonZeroU32::new(EVERYTHING).map(Protocol::from_raw);
        let socket = socket(AddressFamily::PACKET, SocketType::DGRAM, protocol).map_err(|error| failed(&error))?;
        // Only the machine's root may exceed net.core.rmem_max.
        if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, BUFFER).map_err(|error| failed(&error))?;
            skip("root", "the receive buffer is limited to net.core.rmem_max bytes, so packets could be missed");
        }
        let marker = UdpSocket::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
        let trace = Trace { seen: Arc::default(), marker: Arc::new(marker) };
        let seen = Arc::clone(&trace.seen);
        std::thread::spawn(move || read(&socket, &seen));
        Ok(trace)
    }

    /// Returns the contacts since it was last called. Packets are read in order, so
    /// that all earlier packets were read once the marker is seen.
    pub(crate) fn take(&self) -> Result<BTreeSet<Contact>, String> {
        let (seen, arrived) = &*self.seen;
        let before = seen.lock().unwrap_or_else(PoisonError::into_inner).marks;
        self.marker.send_to(b"mark", MARKER).map_err(|error| format!("cannot send the marker: {error}"))?;
        let guard = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = arrived.wait_timeout_while(guard, Duration::from_secs(20), |seen| seen.marks == before);
        let (mut seen, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err("the marker was not seen among the packets".to_owned());
        }
        Ok(std::mem::take(&mut seen.contacts))
    }
}

fn read(socket: &OwnedFd, seen: &(Mutex<Seen>, Condvar)) {
    let mut packet = [0; 128];
    loop {
        let Ok((_, length)) = recv(socket, &mut packet[..], RecvFlags::empty()) else { continue };
        let Some(contact) = contact(&packet[..length.min(packet.len())]) else { continue };
        let (state, arrived) = seen;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if contact.to == SocketAddr::from(MARKER) {
            state.marks += 1;
            arrived.notify_all();
        } else {
            state.contacts.insert(contact);
        }
    }
}

/// Returns the contact that a packet makes, or None if it belongs to an existing
/// connection or is the kernel's own.
fn contact(packet: &[u8]) -> Option<Contact> {
    let (to, protocol, rest): (IpAddr, u8, &[u8]) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 0x0f) * 4;
            let to: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (Ipv4Addr::from(to).into(), *packet.get(9)?, packet.get(header..)?)
        }
        6 => {
            let to: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            let (protocol, rest) = without_options(*packet.get(6)?, packet.get(40..)?);
            (Ipv6Addr::from(to).into(), protocol, rest)
        }
        _ => return None,
    };
    let number = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
    let contact = |port: u16, transport: Transport| Some(Contact { to: (to, port).into(), transport });
    match (protocol, number(2), rest.get(13), rest.first()) {
        // Only SYN without ACK: the answers of the far side have both.
        (TCP, Some(port), Some(flags), _) => contact(port, Transport::Tcp).filter(|_| flags & 0x12 == 0x02),
        // The replies of name servers come from port 53.
        (UDP, Some(port), ..) => contact(port, Transport::Udp).filter(|_| number(0) != Some(53)),
        // The kernel announces groups and neighbours, and reports closed ports, such as the marker's.
        (IGMP, ..) | (ICMP, .., Some(3)) | (ICMPV6, .., Some(1 | 130..=137 | 143)) => None,
        (other, ..) => contact(0, Transport::Other(other)),
    }
}

/// Skips the hop-by-hop options, which the kernel's multicast messages have.
fn without_options(protocol: u8, rest: &[u8]) -> (u8, &[u8]) {
    match (protocol, rest) {
        (0, [next, length, ..]) => (*next, rest.get((usize::from(*length) + 1) * 8..).unwrap_or_default()),
        _ => (protocol, rest),
    }
}
