//! A name server that says what a case wants, lies and silence included.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// More does not fit into a datagram; the rest is asked for by TCP.
const DATAGRAM: usize = 1200;

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Addresses(Vec<IpAddr>),
    /// An alias, and nothing about it.
    Alias(String),
    NoSuchName,
    ServerFailure,
    /// Addresses, in an answer to another question.
    OtherName(Vec<IpAddr>),
    Garbage,
    Silence,
}

/// Names in lower case; successive replies for one name, of which the last stays.
#[derive(Default)]
pub(crate) struct Zone {
    names: HashMap<String, Vec<Reply>>,
    /// How often a name was asked for, by record type.
    asked: HashMap<(String, u16), usize>,
}

pub(crate) type Shared = Arc<Mutex<Zone>>;

impl Zone {
    pub(crate) fn replace(&mut self, names: HashMap<String, Vec<Reply>>) {
        *self = Zone { names, asked: HashMap::new() };
    }

    /// How often a name was looked up.
    pub(crate) fn lookups(&self, name: &str) -> usize {
        self.asked.iter().filter(|((known, _), _)| known == name).map(|(_, count)| *count).max().unwrap_or(0)
    }

    fn reply(&mut self, name: &str, kind: u16) -> Reply {
        let count = self.asked.entry((name.to_owned(), kind)).or_default();
        let number = *count;
        *count += 1;
        let replies = self.names.get(name);
        let reply = replies.and_then(|replies| replies.get(number).or_else(|| replies.last()));
        reply.cloned().unwrap_or(Reply::NoSuchName)
    }
}

/// Serves until this process ends.
pub(crate) fn serve(address: &str, zone: &Shared) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("no name server at {address}: {error}");
    let udp = UdpSocket::bind((address, 53)).map_err(failed)?;
    let tcp = TcpListener::bind((address, 53)).map_err(failed)?;
    let shared = Arc::clone(zone);
    std::thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((length, from)) = udp.recv_from(&mut query) {
            if let Some(mut answer) = answer(&query[..length], &shared) {
                if answer.len() > DATAGRAM {
                    answer.truncate(12 + question(&query[..length]).map_or(0, |(_, _, end)| end - 12));
                    answer[2] |= 0x02;
                    answer[6..12].fill(0);
                }
                let _ = udp.send_to(&answer, from);
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
            if let Some(answer) = answer(&query, &shared) {
                let length = u16::try_from(answer.len()).unwrap_or(u16::MAX).to_be_bytes();
                let _ = stream.write_all(&[&length[..], &answer].concat());
            }
        }
    });
    Ok(())
}

/// Name and type asked for, and where the question ends.
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

fn answer(query: &[u8], zone: &Shared) -> Option<Vec<u8>> {
    let (name, kind, end) = question(query)?;
    let reply = zone.lock().unwrap_or_else(PoisonError::into_inner).reply(&name, kind);
    let (code, records, asked) = match reply {
        Reply::Silence => return None,
        Reply::Garbage => return Some([&query[..2], &[0xff; 40]].concat()),
        Reply::NoSuchName => (3, Vec::new(), None),
        Reply::ServerFailure => (2, Vec::new(), None),
        Reply::Addresses(addresses) => (0, of_kind(&addresses, kind), None),
        Reply::Alias(name) => (0, vec![(CNAME, labels(&name))], None),
        Reply::OtherName(addresses) => (0, of_kind(&addresses, kind), Some(labels("another.test"))),
    };
    let question = match asked {
        Some(name) => [name, query.get(end - 4..end)?.to_vec()].concat(),
        None => query.get(12..end)?.to_vec(),
    };
    let count = u16::try_from(records.len()).ok()?.to_be_bytes();
    let mut answer = [&query[..2], &[0x81, 0x80 | code, 0, 1], &count, &[0; 4], &question].concat();
    for (kind, data) in records {
        // The name is where the question has it; a minute to live.
        answer.extend([&[0xc0, 12], &kind.to_be_bytes()[..], &[0, 1, 0, 0, 0, 60]].concat());
        answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        answer.extend(data);
    }
    Some(answer)
}

fn of_kind(addresses: &[IpAddr], kind: u16) -> Vec<(u16, Vec<u8>)> {
    let record = |address: &IpAddr| match address {
        IpAddr::V4(address) if kind == A => Some((A, address.octets().to_vec())),
        IpAddr::V6(address) if kind == AAAA => Some((AAAA, address.octets().to_vec())),
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
