//! Tests against name servers on loopback, whose responses each test configures.

#![allow(clippy::disallowed_methods, reason = "tests act as servers")]

use super::*;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Clone)]
enum Reply {
    /// Addresses as text; `alias NAME` adds a CNAME before the following ones.
    Records(Vec<String>),
    Code(u8),
    Silence,
    /// Truncated over UDP, complete over TCP.
    Truncated(Vec<String>),
}

fn records(all: &[&str]) -> Reply {
    Reply::Records(all.iter().map(|text| (*text).to_owned()).collect())
}

struct NameServer {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl NameServer {
    /// Starts a server that knows the names in the table only.
    fn start(address: &str, port: u16, table: &[(&str, Reply)]) -> NameServer {
        let table: Arc<HashMap<String, Reply>> =
            Arc::new(table.iter().map(|(name, reply)| ((*name).to_owned(), reply.clone())).collect());
        // A port that is free for UDP need not be free for TCP.
        let both = |_| {
            let udp = UdpSocket::bind((address, port)).ok()?;
            let tcp = TcpListener::bind((address, udp.local_addr().ok()?.port())).ok()?;
            Some((udp, tcp))
        };
        let (udp, tcp) = (0..20).find_map(both).unwrap();
        let port = udp.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, for_tcp) = (asked.clone(), table.clone());
        std::thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((length, peer)) = udp.recv_from(&mut query) {
                count.fetch_add(1, Ordering::SeqCst);
                if let Some(reply) = reply(&query[..length], &table, false) {
                    let _ = udp.send_to(&reply, peer);
                }
            }
        });
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                let mut length = [0; 2];
                while stream.read_exact(&mut length).is_ok() {
                    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
                    stream.read_exact(&mut query).unwrap();
                    let reply = reply(&query, &for_tcp, true).unwrap();
                    stream.write_all(&u16::try_from(reply.len()).unwrap().to_be_bytes()).unwrap();
                    stream.write_all(&reply).unwrap();
                }
            }
        });
        NameServer { port, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

fn reply(query: &[u8], table: &HashMap<String, Reply>, tcp: bool) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), 12);
    while query[at] != 0 {
        labels.push(String::from_utf8(query[at + 1..=at + usize::from(query[at])].to_vec()).unwrap());
        at += usize::from(query[at]) + 1;
    }
    let name = labels.join(".");
    let kind = query[at + 2];
    let question = &query[12..at + 5];
    let (all, code, cut) = match table.get(&name).unwrap_or(&Reply::Code(3)) {
        Reply::Silence => return None,
        Reply::Code(code) => (&Vec::new(), *code, false),
        Reply::Records(all) => (all, 0, false),
        Reply::Truncated(all) if tcp => (all, 0, false),
        Reply::Truncated(_) => (&Vec::new(), 0, true),
    };
    let (mut answers, mut count, mut owner) = (Vec::new(), 0u16, encoded(&name));
    for text in all {
        let (code, data) = match (text.strip_prefix("alias "), text.parse::<IpAddr>()) {
            (Some(alias), _) => (5, encoded(alias)),
            (_, Ok(IpAddr::V4(address))) => (1, address.octets().to_vec()),
            (_, Ok(IpAddr::V6(address))) => (28, address.octets().to_vec()),
            _ => panic!("{text}"),
        };
        if code != 5 && code != kind {
            continue;
        }
        answers.extend_from_slice(&owner);
        answers.extend_from_slice(&[0, code, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
        answers.extend_from_slice(&data);
        count += 1;
        if code == 5 {
            owner = data;
        }
    }
    let flags = [0x81 | if cut { 2 } else { 0 }, 0x80 | code];
    Some([&query[..2], &flags, &[0, 1], &count.to_be_bytes(), &[0; 4], question, &answers].concat())
}

fn resolver(servers: &[&str], port: u16, search: &str) -> (tempfile::TempDir, Resolver) {
    let dir = tempfile::tempdir().unwrap();
    let (hosts, conf) = (dir.path().join("hosts"), dir.path().join("resolv.conf"));
    let servers: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    std::fs::write(&hosts, "10.0.0.7 pinned.test short\n").unwrap();
    std::fs::write(&conf, format!("{servers}search {search}\n")).unwrap();
    (dir, Resolver::with_files(hosts, conf, port))
}

fn resolve(resolver: &Resolver, host: &str) -> Result<Vec<String>, HttpError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(resolver.resolve(host, Instant::now() + Duration::from_secs(3)))?;
    Ok(found.iter().map(ToString::to_string).collect())
}

#[test]
fn names_are_resolved_to_addresses() {
    let many: Vec<String> = (0..1000).map(|n| format!("10.1.{}.{}", n / 250, n % 250)).collect();
    let table = [
        ("v4.test", records(&["10.0.0.1", "10.0.0.2"])),
        ("both.test", records(&["fd00::1", "10.0.0.1"])),
        ("v6.test", records(&["fd00::1"])),
        ("alias.test", records(&["alias real.test", "10.0.0.3"])),
        ("foreign.test", records(&["10.0.0.4", "alias other.test"])),
        ("empty.test", records(&[])),
        ("many.test", Reply::Truncated(many.clone())),
        ("servfail.test", Reply::Code(2)),
        ("refused.test", Reply::Code(5)),
        ("lone.corp.test", records(&["10.0.0.5"])),
        ("a.b.corp.test", records(&["10.0.0.6"])),
        ("pinned.test", records(&["10.6.6.6"])),
    ];
    let server = NameServer::start("127.0.0.1", 0, &table);
    let (_dir, resolver) = resolver(&["127.0.0.1"], server.port, "other.test corp.test");
    let cases: &[(&str, Result<&[&str], &str>)] = &[
        ("v4.test", Ok(&["10.0.0.1", "10.0.0.2"])),
        ("both.test", Ok(&["10.0.0.1", "fd00::1"])),
        ("v6.test", Ok(&["fd00::1"])),
        ("alias.test", Ok(&["10.0.0.3"])),
        ("localhost", Ok(&["127.0.0.1", "::1"])),
        ("x.localhost", Ok(&["127.0.0.1", "::1"])),
        ("pinned.test", Ok(&["10.0.0.7"])),
        ("short", Ok(&["10.0.0.7"])),
        ("lone", Ok(&["10.0.0.5"])),
        // The search list applies to names without a dot only.
        ("a.b", Err("no address")),
        ("foreign.test", Err("no address")),
        ("missing.test", Err("no address")),
        ("empty.test", Err("no address")),
        ("servfail.test", Err("SERVFAIL")),
        ("refused.test", Err("REFUSED")),
        ("a..test", Err("not a valid DNS name")),
        ("a\\046test", Err("not a valid DNS name")),
        ("", Err("not a valid DNS name")),
    ];
    for (host, expected) in cases {
        match (resolve(&resolver, host), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, *expected, "{host}"),
            (Err(error), Err(said)) => {
                assert_eq!((error.kind, error.sent), (HttpErrorKind::Dns, false));
                assert!(error.explained().contains(said), "{host}: {error:?}");
            }
            (found, _) => panic!("{host}: {found:?}"),
        }
    }
    assert_eq!(resolve(&resolver, "many.test").unwrap(), many[..MAX_ADDRESSES]);
}

#[test]
fn one_lookup_sends_one_query_for_each_address_family() {
    let server = NameServer::start("127.0.0.1", 0, &[("a.test", records(&["10.0.0.1"]))]);
    let (_dir, resolver) = resolver(&["127.0.0.1"], server.port, "");
    resolve(&resolver, "a.test").unwrap();
    assert_eq!(server.asked(), 2);
}

#[test]
fn the_second_server_is_queried_if_the_first_fails() {
    let good = [("a.test", records(&["10.0.0.1"]))];
    let second = NameServer::start("127.0.0.2", 0, &good);
    // The first server is not there, then it is silent, then it fails.
    let (_dir, dead) = resolver(&["127.0.0.3", "127.0.0.2"], second.port, "");
    assert_eq!(resolve(&dead, "a.test").unwrap(), ["10.0.0.1"]);
    NameServer::start("127.0.0.5", second.port, &[("a.test", Reply::Silence)]);
    let (_dir, silent) = resolver(&["127.0.0.5", "127.0.0.2"], second.port, "");
    assert_eq!(resolve(&silent, "a.test").unwrap(), ["10.0.0.1"]);
    NameServer::start("127.0.0.4", second.port, &[("a.test", Reply::Code(2))]);
    let (_dir, failing) = resolver(&["127.0.0.4", "127.0.0.2"], second.port, "");
    assert_eq!(resolve(&failing, "a.test").unwrap(), ["10.0.0.1"]);
}

#[test]
fn a_lookup_without_a_response_ends_at_the_deadline() {
    let server = NameServer::start("127.0.0.1", 0, &[("a.test", Reply::Silence)]);
    let (_dir, resolver) = resolver(&["127.0.0.1"], server.port, "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(resolver.resolve("a.test", Instant::now() + Duration::from_millis(600))).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Dns);
    assert!(server.asked() >= 4, "a lost datagram is sent again");
}

#[test]
fn missing_files_cause_an_error_and_no_panic() {
    let resolver = Resolver::with_files("/nonexistent/hosts".into(), "/nonexistent/conf".into(), 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(resolver.resolve("a.test", Instant::now() + Duration::from_millis(200))).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Dns);
}
