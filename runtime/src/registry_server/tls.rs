//! The TLS configuration of the server.

use super::TlsFiles;
use super::files;
use crate::failure::Failure;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;

/// Returns the configuration with the certificate chain and key of these files.
pub(super) fn config(files: &TlsFiles) -> Result<Arc<ServerConfig>, Failure> {
    let failed = |why: &str| Failure::config(format!("registry: {why}"));
    let certificate = files::read_public(&files.certificate, "certificate file")?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .ok()
        .filter(|chain: &Vec<_>| !chain.is_empty())
        .ok_or_else(|| failed("the certificate file holds no PEM certificate; write the chain as PEM"))?;
    let key = zeroize::Zeroizing::new(files::read_private(&files.key, "key file")?);
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| failed("the key file holds no PEM private key; write the key as PEM"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| {
            failed(&format!("certificate and key cannot be used: {error}; check that they belong together"))
        })?;
    Ok(Arc::new(config))
}
