//! Every packet of the near namespace, read from a packet socket: whom it spoke
//! to, or tried to, whatever anybody says of it.

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

/// Room for what a busy machine does not read at once.
const BUFFER: usize = 128 << 20;

/// Datagrams to this address are ours: they mark a place in the stream.
const MARKER: (Ipv4Addr, u16) = (Ipv4Addr::new(127, 0, 99, 99), 9);

const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// An attempt to speak to somebody: the first packet of a connection, a datagram,
/// or whatever else there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Contact {
    /// Port 0 where the protocol is another.
    pub(crate) to: SocketAddr,
    pub(crate) by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    Tcp,
    Udp,
    /// The number of its protocol.
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
    /// Of the network namespace of this thread, from now on.
    pub(crate) fn start() -> Result<Trace, String> {
        let failed = |error: &dyn std::fmt::Display| format!("packets cannot be traced: {error}");
        let protocol = NonZeroU32::new(EVERYTHING).map(Protocol::from_raw);
        let socket = socket(AddressFamily::PACKET, SocketType::DGRAM, protocol).map_err(|error| failed(&error))?;
        // Only root of the machine gets as much as it likes.
        if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, BUFFER).map_err(|error| failed(&error))?;
            skip("root", "packets wait in net.core.rmem_max bytes only, and some could be missed");
        }
        let marker = UdpSocket::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
        let trace = Trace { seen: Arc::default(), marker: Arc::new(marker) };
        let seen = Arc::clone(&trace.seen);
        std::thread::spawn(move || read(&socket, &seen));
        Ok(trace)
    }

    /// Everybody who was spoken to since this was last asked. Packets are read in
    /// their order, so once the marker is seen, all before it were.
    pub(crate) fn take(&self) -> Result<BTreeSet<Contact>, String> {
        let (seen, arrived) = &*self.seen;
        let before = seen.lock().unwrap_or_else(PoisonError::into_inner).marks;
        self.marker.send_to(b"mark", MARKER).map_err(|error| format!("no marker: {error}"))?;
        let guard = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = arrived.wait_timeout_while(guard, Duration::from_secs(20), |seen| seen.marks == before);
        let (mut seen, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err("the trace of packets was lost".to_owned());
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

/// None for what belongs to a connection that exists, and for what the kernel
/// sends by itself.
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
    let contact = |port: u16, by: By| Some(Contact { to: (to, port).into(), by });
    match (protocol, number(2), rest.get(13), rest.first()) {
        // SYN without ACK. What the far side answers has both.
        (TCP, Some(port), Some(flags), _) => contact(port, By::Tcp).filter(|_| flags & 0x12 == 0x02),
        // Answers of name servers come back from port 53.
        (UDP, Some(port), ..) => contact(port, By::Udp).filter(|_| number(0) != Some(53)),
        // Kernels tell of groups and neighbours, and that nobody listens: to our marker, for one.
        (IGMP, ..) | (ICMP, .., Some(3)) | (ICMPV6, .., Some(1 | 130..=137 | 143)) => None,
        (other, ..) => contact(0, By::Other(other)),
    }
}

/// The header behind the options for everybody on the way, which the kernel's words to groups have.
fn without_options(protocol: u8, rest: &[u8]) -> (u8, &[u8]) {
    match (protocol, rest) {
        (0, [next, length, ..]) => (*next, rest.get((usize::from(*length) + 1) * 8..).unwrap_or_default()),
        _ => (protocol, rest),
    }
}
