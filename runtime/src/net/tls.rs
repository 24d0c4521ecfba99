//! The TLS configuration of a grant: trusted authorities, client certificate and
//! pinned keys. `pem` reads the files.
//!
//! The versions (TLS 1.2 and 1.3) and the crypto provider are fixed here. Files and
//! variables of the environment change nothing, and verification cannot be
//! disabled. A grant with a CA trusts that CA only.

mod pem;
mod pins;

pub use pem::{is_pem, pem_or_file, read_key, read_pem};
pub(super) use pem::{key_in, pem_in};

#[cfg(feature = "mutation-testing")]
use crate::net::mutants;
use crate::trust::FileError;
use pins::Pinned;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use wasm_cpi_checks::{Check, with_code};
use wasm_cpi_policy::destination::Scheme;
use wasm_cpi_policy::secret::Secret;

/// The TLS settings of a grant, as PEM texts.
#[derive(Default)]
pub struct TlsSettings<'a> {
    /// The only trusted authorities; `None` trusts the public ones.
    pub ca: Option<TrustedCa<'a>>,
    pub client: Option<ClientIdentity<'a>>,
    /// SHA-256 of the server's public key (SubjectPublicKeyInfo) or of its certificate. The
    /// server must match one of them, unless the list is empty.
    pub pins: &'a [[u8; 32]],
}

/// Authorities that are trusted instead of the public ones.
#[derive(Clone, Copy)]
pub struct TrustedCa<'a> {
    /// The setting that holds them, for messages.
    pub setting: &'static str,
    pub pem: &'a str,
}

/// The certificate chain and the private key of a client.
pub struct ClientIdentity<'a> {
    pub chain: &'a str,
    pub key: &'a Secret,
}

/// A setting or a file that cannot be used. Messages do not quote contents.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("TLS cannot be set up: {0}")]
    Setup(#[source] rustls::Error),
    #[error("the authorities in `{setting}` cannot be used: {source}")]
    Authorities { setting: &'static str, source: VerifierBuilderError },
    #[error("`{setting}` holds a certificate that cannot be used: {source}")]
    Authority { setting: &'static str, source: rustls::Error },
    #[error("`tls.client` cannot be used: {0}")]
    Client(#[source] rustls::Error),
    /// Has no source, because its message could quote the contents.
    #[error("`{setting}` holds {what}")]
    Pem { setting: &'static str, what: &'static str },
    #[error("the file {} cannot be read: {source}; give a readable PEM file, or PEM itself", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the file {} {source}", path.display())]
    Untrusted { path: PathBuf, source: FileError },
    #[error("the file {} does not hold PEM; name a file in PEM format", .0.display())]
    NoPem(PathBuf),
    #[error("the file {} can be read by all users; run `chmod o-r` on it", .0.display())]
    KeyReadableByAll(PathBuf),
}

impl TlsError {
    /// Returns the check that refused a file, if one did.
    pub fn check(&self) -> Option<Check> {
        match self {
            TlsError::KeyReadableByAll(_) => Some(Check::KeyFile),
            TlsError::Untrusted { source, .. } => source.check(),
            _ => None,
        }
    }

    /// Returns the message, followed by the code of the check that refused a file.
    pub fn text_with_code(&self) -> String {
        with_code(&self.to_string(), self.check())
    }
}

/// Returns the check that a server's certificate does not pass.
pub(super) fn refusing_check(error: &CertificateError) -> Option<Check> {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_) => {
            Some(Check::TlsIssuer)
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Some(Check::TlsName),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some(Check::TlsTime),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Some(Check::TlsTime),
        // The error that `pins` returns.
        CertificateError::ApplicationVerificationFailure => Some(Check::TlsPin),
        _ => None,
    }
}

/// Returns the TLS configuration for these settings.
pub fn client_config(settings: &TlsSettings<'_>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let webpki =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots(settings.ca)?), provider.clone()).build().map_err(
            |source| TlsError::Authorities { setting: settings.ca.map_or("tls.ca", |ca| ca.setting), source },
        )?;
    let verifier: Arc<dyn ServerCertVerifier> =
        if settings.pins.is_empty() { webpki } else { Arc::new(Pinned::new(webpki, settings.pins)) };
    #[cfg(feature = "mutation-testing")]
    let verifier = mutants::make_lenient(verifier);
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(TlsError::Setup)?
        // rustls calls every custom verifier dangerous; this one is webpki's, or stricter.
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &settings.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let (chain, key) = client_key_and_chain(client, &provider)?;
            builder.with_client_auth_cert(chain, key).map_err(TlsError::Client)?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    #[cfg(feature = "mutation-testing")]
    mutants::log_keys(&mut config);
    Ok(config)
}

/// Returns the TLS configuration for https://, and one without any trusted authority for http://.
pub fn for_scheme(scheme: Scheme, settings: &TlsSettings<'_>) -> Result<ClientConfig, TlsError> {
    if scheme == Scheme::Https {
        return client_config(settings);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn roots(ca: Option<TrustedCa<'_>>) -> Result<RootCertStore, TlsError> {
    #[cfg(feature = "mutation-testing")]
    let ca = ca.or_else(|| Some(TrustedCa { setting: "SSL_CERT_FILE", pem: mutants::environment_ca()? }));
    let Some(TrustedCa { setting, pem }) = ca else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let mut store = RootCertStore::empty();
    for certificate in certificates(setting, pem)? {
        store.add(certificate).map_err(|source| TlsError::Authority { setting, source })?;
    }
    Ok(store)
}

fn client_key_and_chain(
    client: &ClientIdentity<'_>,
    provider: &CryptoProvider,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates("tls.client.cert", client.chain)?;
    let unusable = |what| TlsError::Pem { setting: "tls.client.key", what };
    let key = PrivateKeyDer::from_pem_slice(client.key.reveal().as_bytes())
        .map_err(|_| unusable("no private key in PEM; give a `PRIVATE KEY` block"))?;
    provider
        .key_provider
        .load_private_key(key.clone_key())
        .map_err(|_| unusable("a private key of an unsupported kind; use an RSA, ECDSA or Ed25519 key"))?;
    Ok((chain, key))
}

fn certificates(setting: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(TlsError::Pem { setting, what: "no certificate in PEM; give at least one `CERTIFICATE` block" }),
        Err(_) => Err(TlsError::Pem { setting, what: "a broken PEM block; copy the certificate again" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["a.test".into()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn the_error_of_an_invalid_setting_names_it_and_does_not_quote_it() {
        let (good, key) = pair();
        let other_key = Secret::new(pair().1);
        let key = Secret::new(key);
        let garbage = Secret::new("-----BEGIN PRIVATE KEY-----\nhunter2hunter2\n-----END PRIVATE KEY-----");
        let client = |chain, key| Some(ClientIdentity { chain, key });
        let broken = "-----BEGIN CERTIFICATE-----\nhunter2";
        let ca = |setting, pem| Some(TrustedCa { setting, pem });
        let cases = [
            (TlsSettings { ca: ca("tls.ca", ""), ..Default::default() }, "`tls.ca` holds no certificate"),
            (TlsSettings { ca: ca("registry.ca", broken), ..Default::default() }, "`registry.ca` holds a broken PEM"),
            (TlsSettings { client: client("", &key), ..Default::default() }, "`tls.client.cert` holds no"),
            (TlsSettings { client: client(&good, &garbage), ..Default::default() }, "`tls.client.key` holds"),
            (TlsSettings { client: client(&good, &other_key), ..Default::default() }, "`tls.client` cannot be used"),
        ];
        for (settings, expected) in cases {
            let error = client_config(&settings).unwrap_err().to_string();
            assert!(error.starts_with(expected) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn valid_settings_and_no_settings_are_accepted() {
        let (good, key) = pair();
        let key = Secret::new(key);
        client_config(&TlsSettings::default()).unwrap();
        let client = Some(ClientIdentity { chain: &good, key: &key });
        let ca = Some(TrustedCa { setting: "tls.ca", pem: &good });
        client_config(&TlsSettings { ca, client, pins: &[[0; 32]] }).unwrap();
    }
}
