//! Tunnels through proxies that connect or refuse, and the addresses that the proxies
//! are asked for.

use super::run;
use super::server::{Server, response};
use crate::net::proxy::ProxyConfig;
use crate::net::proxy::tunnel::ResolvedProxy;
use serde_json::json;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use wasm_cpi_policy::destination::Destination;

/// Two addresses that no host has here.
const FAR: [&str; 2] = ["10.203.7.9", "10.203.7.10"];

/// Asks the proxy to connect to one of them. Returns the requests to the proxy, and the error.
fn connect(proxy: &Server) -> (Vec<String>, Option<String>) {
    let config: ProxyConfig = serde_json::from_value(json!({"http": format!("http://{}", proxy.address)})).unwrap();
    let destination = Destination::parse("http://far.test/", 1000).unwrap();
    let addresses: Vec<IpAddr> = FAR.iter().map(|address| address.parse().unwrap()).collect();
    let (proxied, _) = config.proxy_for(&destination, &addresses).unwrap();
    let resolved = ResolvedProxy { proxy: proxied.clone(), addresses: vec![proxy.address.ip()] };
    let until = Instant::now() + Duration::from_secs(4);
    let error = run(resolved.connect(&destination, &addresses, until)).err();
    (proxy.requests().iter().map(|seen| seen.line().to_owned()).collect(), error)
}

fn asked(addresses: &[&str]) -> Vec<String> {
    addresses.iter().map(|address| format!("CONNECT {address}:80 HTTP/1.1")).collect()
}

#[test]
fn the_next_address_is_tried_only_if_the_proxy_could_not_connect() {
    for (status, tried, said) in [
        ("200 OK", 1, None),
        ("407 x", 1, Some("requires other credentials (407)")),
        ("403 x", 1, Some("does not connect to 10.203.7.9:80 (status 403)")),
        ("500 x", 1, Some("does not connect to 10.203.7.9:80 (status 500)")),
        ("502 x", 2, Some("does not connect to 10.203.7.10:80 (status 502)")),
        ("503 x", 2, Some("does not connect to 10.203.7.10:80 (status 503)")),
        ("504 x", 2, Some("does not connect to 10.203.7.10:80 (status 504)")),
    ] {
        let proxy = Server::answering(response(status, "", ""));
        let (lines, error) = connect(&proxy);
        assert_eq!(lines, asked(&FAR[..tried]), "{status}");
        assert_eq!(error.is_some(), said.is_some(), "{status}: {error:?}");
        assert!(said.is_none_or(|said| error.is_some_and(|error| error.contains(said))), "{status}");
    }
}

#[test]
fn an_address_that_does_not_respond_leaves_time_for_the_next() {
    let proxy = Server::plain(|seen, wire| {
        // Waits for the client to close the connection, for the first address only.
        let waits = seen.line().contains("10.203.7.9:");
        let _ = if waits { wire.read(&mut [0]).map(drop) } else { wire.write_all(&response("200 OK", "", "")) };
    });
    assert_eq!(connect(&proxy), (asked(&FAR), None));
}
