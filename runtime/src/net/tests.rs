//! The whole path against servers on loopback that behave, or do not.

#![allow(clippy::disallowed_methods, reason = "tests play the other side")]

mod clients;
mod exchanges;
mod fixture;
mod gates;
mod handshakes;
mod images;
mod logins;
mod server;
mod tunnels;

use std::future::Future;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
