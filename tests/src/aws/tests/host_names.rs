//! The addresses and names at which a gateway serves the simulator.

use super::*;
use crate::aws::Gateway;
use crate::client::tls_config;
use crate::gateway::{FREE_PORT, Services as _};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

/// Returns true if a client that expects this name trusts the gateway.
fn is_trusted(cloud: &Value, name: &str) -> bool {
    let endpoint = cloud["endpoints"]["ec2"].as_str().unwrap_or_default();
    let address: SocketAddr = endpoint.trim_start_matches("https://").parse().unwrap_or(FREE_PORT);
    let name = ServerName::try_from(name.to_owned()).unwrap_or_else(|error| panic!("{error}"));
    let config = tls_config(cloud["ca"].as_str().unwrap_or_default()).unwrap_or_else(|error| panic!("{error}"));
    let connection = ClientConnection::new(config, name).unwrap_or_else(|error| panic!("{error}"));
    let stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("{error}"));
    StreamOwned::new(connection, stream).write_all(b"GET / HTTP/1.1\r\n").is_ok()
}

#[test]
fn the_certificate_has_the_names_of_the_region() {
    let cloud = Gateway::secure(Simulator::new()).cloud();
    for name in Service::HOST_NAMES {
        assert!(is_trusted(&cloud, name), "{name}");
    }
    assert!(!is_trusted(&cloud, "ec2.eu-west-1.amazonaws.com"));
}

#[test]
fn a_service_can_have_an_address_of_its_own() {
    let place = |service| match service {
        Service::Metadata => SocketAddr::from(([127, 0, 0, 99], 0)),
        _ => FREE_PORT,
    };
    let cloud = Gateway::secure_at(Simulator::new(), place).cloud();
    assert!(
        cloud["endpoints"]["metadata"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.99:")),
        "{cloud}"
    );
}
