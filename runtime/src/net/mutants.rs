//! The behaviour of the network code without a check, where skipping the check is not
//! enough. Only mutation tests use it; no program that ships contains it.

use crate::net::error::HttpError;
use crate::net::resolver::Resolver;
use crate::net::tls::refusing_check;
use crate::vault::Vault;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::{Destination, Host};

/// Resolves the name once more when connecting, as HTTP clients do, if that check is off.
pub async fn resolve_again(destination: &Destination) -> Option<Vec<IpAddr>> {
    let Host::Name(name) = destination.host() else { return None };
    let until = Instant::now() + Duration::from_secs(10);
    if Check::ResolveOnce.is_off() { Resolver::system().resolve(name, until).await.ok() } else { None }
}

/// Redacts the message of an error for the guest, which could then find out which of its own words are secrets.
pub fn redact_for_guest(vault: &Vault, error: HttpError) -> HttpError {
    if Check::GuestText.is_off() { HttpError { message: vault.redact(&error.message), ..error } } else { error }
}

/// Returns how many bytes of a body still count against the limit: without the check, also those by which the secrets
/// in it are longer than their seals.
pub fn with_secrets(still_to_count: u64, guest_bytes: u64, length: u64) -> u64 {
    let secret_bytes = if Check::CountedBytes.is_off() { length.saturating_sub(guest_bytes) } else { 0 };
    still_to_count + secret_bytes
}

/// Returns the authorities that `SSL_CERT_FILE` names.
#[expect(clippy::disallowed_methods, reason = "only mutation tests read it")]
pub fn environment_ca() -> Option<&'static str> {
    static CA: OnceLock<Option<String>> = OnceLock::new();
    let read = || std::fs::read_to_string(std::env::var_os("SSL_CERT_FILE")?).ok();
    CA.get_or_init(read).as_deref().filter(|_| Check::TlsEnvironment.is_off())
}

/// Logs session keys to the file that `SSLKEYLOGFILE` names.
pub fn log_keys(config: &mut ClientConfig) {
    if Check::TlsKeyLog.is_off() {
        config.key_log = Arc::new(rustls::KeyLogFile::new());
    }
}

/// Returns a verifier that accepts certificates which a disabled check would reject.
pub fn make_lenient(strict: Arc<dyn ServerCertVerifier>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(Lenient(strict))
}

#[derive(Debug)]
struct Lenient(Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(why)) if refusing_check(&why).is_some_and(Check::is_off) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
