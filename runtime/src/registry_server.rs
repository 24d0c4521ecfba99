//! `wasm-cpi registry`: the BOSH registry's HTTP API on an embedded store.
//!
//! For stemcells that still need a registry where none exists any more, and for
//! tests. Every request needs basic auth; what was acknowledged is on disk. It
//! listens where it is told and opens no connection of its own.

mod api;
mod auth;
mod connections;
mod files;
mod store;
mod tls;

use crate::failure::Failure;
use api::Api;
use auth::Credentials;
use connections::RegistryServer;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use store::Store;
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;

pub struct ServerOptions {
    /// Port 0 takes a free one; the address is printed.
    pub listen: SocketAddr,
    /// The database file: made if it is not there.
    pub store: PathBuf,
    pub user: String,
    /// Holds the password and at most a newline after it.
    pub password_file: PathBuf,
    pub tls: Option<TlsFiles>,
    /// The largest settings that are taken.
    pub max_kib: u64,
}

/// PEM files of the server's certificate chain and its key.
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Serves until SIGTERM or SIGINT; requests under way are answered first.
pub fn serve(options: ServerOptions) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::runtime(format!("the registry cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let server = prepare(&options).await?;
        let stop = signals().map_err(failed)?;
        let address = server.address()?;
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        // Whoever started us with port 0 reads it from here; nobody has to.
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "registry listens on {scheme}://{address}").and_then(|()| out.flush());
        drop(out);
        if scheme == "http" && !address.ip().is_loopback() {
            let warning = "warning: without TLS, agent settings and the password travel in the clear";
            let _ = writeln!(std::io::stderr(), "{warning}");
        }
        server.run(stop).await;
        Ok(())
    })
}

/// Checks everything before the first request can come.
async fn prepare(options: &ServerOptions) -> Result<RegistryServer, Failure> {
    let credentials = Credentials::new(&options.user, &options.password_file)?;
    let tls = options.tls.as_ref().map(tls::config).transpose()?;
    let store = Store::open(&options.store)?;
    let api = Api::new(store, credentials, options.max_kib);
    RegistryServer::bind(options.listen, Arc::new(api), tls.map(TlsAcceptor::from)).await
}

/// Done when a signal came.
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    let (receiver, sender) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
    }
    receiver.set_nonblocking(true)?;
    let mut receiver = tokio::net::UnixStream::from_std(receiver)?;
    Ok(async move {
        let _ = receiver.read_u8().await;
    })
}

#[cfg(test)]
mod tests;
