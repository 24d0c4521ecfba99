//! The whole path against servers on loopback that behave, or do not.

mod exchanges;
mod handshakes;
mod server;

use std::future::Future;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
