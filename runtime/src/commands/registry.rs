//! `registry`: serves the BOSH registry's HTTP API.

use crate::commands::report::Report;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::registry_server::{self, TlsFiles};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args)]
pub struct RegistryOptions {
    /// Address to listen on; with port 0 a free port is used and printed
    #[arg(long, default_value = "127.0.0.1:25777")]
    listen: SocketAddr,
    /// Database file; it is created with mode 0600 if it does not exist
    #[arg(long)]
    database: PathBuf,
    /// User of the HTTP basic authentication
    #[arg(long)]
    user: String,
    /// File that holds the password
    #[arg(long)]
    password_file: PathBuf,
    /// Largest settings of one VM to accept, in KiB; at least twice `limits.registry_kib` of the CPI's config
    #[arg(long, default_value_t = 2 * Limits::default().registry_kib)]
    max_kib: u64,
    /// File with a certificate chain (PEM), to serve TLS
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// File with the private key of the certificate (PEM)
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
}

pub fn registry(options: RegistryOptions) -> Result<Report, Failure> {
    let tls = options.cert.zip(options.key).map(|(certificate, key)| TlsFiles { certificate, key });
    registry_server::serve(registry_server::ServerOptions {
        listen: options.listen,
        store: options.database,
        user: options.user,
        password_file: options.password_file,
        tls,
        max_kib: options.max_kib,
    })?;
    Ok(Report::good(""))
}
