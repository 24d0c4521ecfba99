//! `wasm-cpi registry`: a server with the BOSH registry's HTTP API and an embedded store.
//!
//! It is for stemcells that still need a registry, and for tests. Every request needs basic auth.
//! Settings are on disk before a write is acknowledged. The server opens no connections itself.

mod api;
mod auth;
mod connection_limit;
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

/// The options of the server.
pub struct ServerOptions {
    /// The address to listen on. Port 0 selects a free port; the address is printed.
    pub listen: SocketAddr,
    /// The database file, which is created if it does not exist.
    pub store: PathBuf,
    pub user: String,
    /// A file with the password and at most one newline after it.
    pub password_file: PathBuf,
    pub tls: Option<TlsFiles>,
    /// The largest settings that are accepted.
    pub max_kib: u64,
}

/// The PEM files of the server's certificate chain and its key.
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Serves until SIGTERM or SIGINT. Requests in progress are answered first.
pub fn serve(options: ServerOptions) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::runtime(format!("registry: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let server = prepare(&options).await?;
        let stop = signals().map_err(failed)?;
        let address = server.address()?;
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        // A caller that chose port 0 reads the port here. No caller has to read it.
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "registry listens on {scheme}://{address}").and_then(|()| out.flush());
        drop(out);
        if scheme == "http" && !address.ip().is_loopback() {
            let warning =
                "warning: without TLS, agent settings and the password are sent unencrypted; use --cert and --key";
            let _ = writeln!(std::io::stderr(), "{warning}");
        }
        server.run(stop).await;
        Ok(())
    })
}

/// Checks all options before the first request is accepted.
async fn prepare(options: &ServerOptions) -> Result<RegistryServer, Failure> {
    let credentials = Credentials::new(&options.user, &options.password_file)?;
    let tls = options.tls.as_ref().map(tls::config).transpose()?;
    let store = Store::open(&options.store)?;
    let api = Api::new(store, credentials, options.max_kib);
    RegistryServer::bind(options.listen, Arc::new(api), tls.map(TlsAcceptor::from)).await
}

/// Returns a future that ends when SIGTERM or SIGINT arrives.
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
