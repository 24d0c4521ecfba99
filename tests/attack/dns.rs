//! A name server whose replies a case chooses, wrong and missing ones included.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// The largest reply over UDP. A client asks for longer ones over TCP.
const DATAGRAM: usize = 1200;
/// Replies to queries that were sent to another server.
const OTHER_SERVER: &str = "5.6.7.66";

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Addresses(Vec<IpAddr>),
    /// An alias, and the addresses of its target, if the reply has any.
    Alias(String, Vec<IpAddr>),
    /// Two names, each an alias of the other.
    AliasLoop,
    NoSuchName,
    ServerFailure,
    /// Addresses, in a reply to another question.
    OtherName(Vec<IpAddr>),
    /// Addresses of another name, in a reply to the right question.
    OtherOwner(Vec<IpAddr>),
    /// Addresses, with the ID of another query.
    WrongId(Vec<IpAddr>),
    /// Addresses, from a server that was not asked.
    OtherServer(Vec<IpAddr>),
    /// A record whose name points to itself.
    PointerLoop,
    /// A record of three bytes where an address has four.
    ShortAddress,
    /// The header announces records that are missing.
    MissingRecords,
    /// Too long for UDP and for TCP.
    Endless,
    Garbage,
    Silence,
}

/// The replies for each name, in lower case. The last reply for a name repeats.
#[derive(Default)]
pub(crate) struct Zone {
    names: HashMap<String, Vec<Reply>>,
    /// The number of queries for a name and record type.
    queries: HashMap<(String, u16), usize>,
}

pub(crate) type Shared = Arc<Mutex<Zone>>;

impl Zone {
    pub(crate) fn replace(&mut self, names: HashMap<String, Vec<Reply>>) {
        *self = Zone { names, queries: HashMap::new() };
    }

    /// Returns how often a name was looked up.
    pub(crate) fn lookups(&self, name: &str) -> usize {
        self.queries.iter().filter(|((known, _), _)| known == name).map(|(_, count)| *count).max().unwrap_or(0)
    }

    fn reply(&mut self, name: &str, kind: u16) -> Reply {
        let count = self.queries.entry((name.to_owned(), kind)).or_default();
        let number = *count;
        *count += 1;
        let replies = self.names.get(name);
        let reply = replies.and_then(|replies| replies.get(number).or_else(|| replies.last()));
        reply.cloned().unwrap_or(Reply::NoSuchName)
    }
}

/// Starts a name server that runs until this process ends.
pub(crate) fn serve(address: &str, zone: &Shared) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot start the name server at {address}: {error}");
    let udp = UdpSocket::bind((address, 53)).map_err(failed)?;
    let other_server = UdpSocket::bind((OTHER_SERVER, 53)).map_err(failed)?;
    let tcp = TcpListener::bind((address, 53)).map_err(failed)?;
    let shared = Arc::clone(zone);
    std::thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((length, from)) = udp.recv_from(&mut query) {
            if let Some((mut answer, from_asked)) = answer(&query[..length], &shared) {
                if answer.len() > DATAGRAM {
                    answer.truncate(12 + question(&query[..length]).map_or(0, |(_, _, end)| end - 12));
                    answer[2] |= 0x02;
                    answer[6..12].fill(0);
                }
                let _ = if from_asked { &udp } else { &other_server }.send_to(&answer, from);
            }
        }
    });
    let shared = Arc::clone(zone);
    std::thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            let mut length = [0; 2];
            if stream.read_exact(&mut length).is_err() {
                continue;
            }
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            if stream.read_exact(&mut query).is_err() {
                continue;
            }
            if let Some((answer, _)) = answer(&query, &shared) {
                let length = u16::try_from(answer.len()).unwrap_or(u16::MAX).to_be_bytes();
                let _ = stream.write_all(&[&length[..], &answer].concat());
            }
        }
    });
    Ok(())
}

/// Returns the name and the record type of a query, and where its question ends.
fn question(query: &[u8]) -> Option<(String, u16, usize)> {
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes(query.get(at..at + 2)?.try_into().ok()?);
    Some((labels.join("."), kind, at + 4))
}

/// Returns the reply to a query, and whether it comes from the server that was asked.
fn answer(query: &[u8], zone: &Shared) -> Option<(Vec<u8>, bool)> {
    let (name, kind, end) = question(query)?;
    let reply = zone.lock().unwrap_or_else(PoisonError::into_inner).reply(&name, kind);
    let (mut asked, mut owner) = (query.get(12..end)?.to_vec(), QUESTION_NAME.to_vec());
    let mut id = query[..2].to_vec();
    let (mut code, mut missing, from_asked) = (0, 0, !matches!(reply, Reply::OtherServer(_)));
    let records: Vec<Record> = match reply {
        Reply::Silence => return None,
        Reply::Garbage => return Some(([&query[..2], &[0xff; 40]].concat(), true)),
        Reply::NoSuchName => {
            code = 3;
            Vec::new()
        }
        Reply::ServerFailure => {
            code = 2;
            Vec::new()
        }
        Reply::Addresses(addresses) | Reply::OtherServer(addresses) => records_of_kind(&addresses, kind, &owner),
        Reply::OtherName(addresses) => {
            asked = [labels("another.test"), query.get(end - 4..end)?.to_vec()].concat();
            records_of_kind(&addresses, kind, &owner)
        }
        Reply::OtherOwner(addresses) => records_of_kind(&addresses, kind, &labels("another.test")),
        Reply::WrongId(addresses) => {
            id[0] ^= 0xff;
            records_of_kind(&addresses, kind, &owner)
        }
        Reply::Alias(name, addresses) => {
            let mut records = vec![(owner, CNAME, labels(&name))];
            records.extend(records_of_kind(&addresses, kind, &labels(&name)));
            records
        }
        Reply::AliasLoop => vec![(owner, CNAME, labels("loop.test")), (labels("loop.test"), CNAME, labels(&name))],
        Reply::PointerLoop => {
            let here = 0xc000 | u16::try_from(end).ok()?;
            owner = here.to_be_bytes().to_vec();
            records_of_kind(&[[5, 6, 7, 66].into()], kind, &owner)
        }
        Reply::ShortAddress => vec![(owner, kind, vec![5, 6, 7])],
        Reply::MissingRecords => {
            missing = 9;
            Vec::new()
        }
        Reply::Endless => vec![(owner, kind, vec![5; 4]); 5000],
    };
    let count = u16::try_from(records.len() + missing).ok()?.to_be_bytes();
    let mut answer = [&id, &[0x81, 0x80 | code, 0, 1][..], &count, &[0; 4], &asked].concat();
    for (owner, kind, data) in records {
        // The records may be cached for a minute.
        answer.extend([owner, kind.to_be_bytes().to_vec(), vec![0, 1, 0, 0, 0, 60]].concat());
        answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        answer.extend(data);
    }
    Some((answer, from_asked))
}

/// Owner, type and data.
type Record = (Vec<u8>, u16, Vec<u8>);

/// A pointer to the name in the question.
const QUESTION_NAME: &[u8] = &[0xc0, 12];

fn records_of_kind(addresses: &[IpAddr], kind: u16, owner: &[u8]) -> Vec<Record> {
    let record = |address: &IpAddr| match address {
        IpAddr::V4(address) if kind == A => Some((owner.to_vec(), A, address.octets().to_vec())),
        IpAddr::V6(address) if kind == AAAA => Some((owner.to_vec(), AAAA, address.octets().to_vec())),
        _ => None,
    };
    addresses.iter().filter_map(record).collect()
}

fn labels(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[u8::try_from(label.len()).unwrap_or(0)], label.as_bytes()].concat();
    let mut labels: Vec<u8> = name.split('.').flat_map(label).collect();
    labels.push(0);
    labels
}
