//! Tests of the network code against servers on loopback, of which some misbehave.

#![allow(clippy::disallowed_methods, reason = "tests act as servers")]

mod clients;
mod connections;
mod credentials;
mod exchanges;
mod fixture;
mod gates;
mod handshakes;
mod images;
mod leaks;
mod logins;
mod operations;
mod resumption;
mod server;
mod signatures;
mod tunnels;

use std::future::Future;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
