//! What the network path would do without a check, where leaving the check out is not
//! enough. For mutation tests alone: no program that ships has it.

use crate::net::resolve::Resolver;
use reqwest::dns::Addrs;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;

/// Looks a name up when connecting to it, as clients do.
pub async fn asked_again(name: String) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
    let found = Resolver::system().resolve(&name, Instant::now() + Duration::from_secs(10)).await?;
    Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))))
}

#[expect(clippy::disallowed_methods, reason = "no setting: no build that ships has it")]
pub fn environment_ca() -> Option<&'static str> {
    static CA: OnceLock<Option<String>> = OnceLock::new();
    let read = || std::fs::read_to_string(std::env::var_os("SSL_CERT_FILE")?).ok();
    CA.get_or_init(read).as_deref().filter(|_| !Check::TlsEnvironment.on())
}

pub fn keys_logged(config: &mut ClientConfig) {
    if !Check::TlsKeyLog.on() {
        config.key_log = Arc::new(rustls::KeyLogFile::new());
    }
}

pub fn lenient(strict: Arc<dyn ServerCertVerifier>) -> Arc<dyn ServerCertVerifier> {
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
        use CertificateError as Why;
        let verified = self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let check = match &verified {
            Err(Error::InvalidCertificate(why)) => match why {
                Why::UnknownIssuer | Why::BadSignature | Why::Other(_) => Check::TlsIssuer,
                Why::NotValidForName | Why::NotValidForNameContext { .. } => Check::TlsName,
                Why::Expired | Why::ExpiredContext { .. } => Check::TlsTime,
                Why::NotValidYet | Why::NotValidYetContext { .. } => Check::TlsTime,
                _ => return verified,
            },
            _ => return verified,
        };
        if check.on() { verified } else { Ok(ServerCertVerified::assertion()) }
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
