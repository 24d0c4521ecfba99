//! Valid and invalid certificates, and servers that present them.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    PublicKeyData, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    Now,
    Expired,
    NotYet,
}

/// A reason for which a client must reject a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// The host name is only in the common name, which clients no longer accept.
    CommonName,
    /// The certificate is for client authentication.
    ForClients,
    /// The certificate is signed with the key of a valid certificate that is not an
    /// authority's.
    SignedByNonAuthority,
}

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
    /// SHA-256 of the public key, as a pin.
    pub pin: String,
}

impl Default for Authority {
    fn default() -> Self {
        Authority::new()
    }
}

impl Authority {
    pub fn new() -> Authority {
        // With two authorities of the same name, clients would report a wrong signature.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, key());
        Authority(issuer.unwrap_or_else(|error| panic!("cannot create the authority: {error}")))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for these names or addresses.
    pub fn issue(&self, names: &[&str], validity: Validity) -> Identity {
        let (key, mut params) = (key(), params(names));
        (params.not_before, params.not_after) = match validity {
            Validity::Now => (date_time_ymd(2000, 1, 1), date_time_ymd(2999, 1, 1)),
            Validity::Expired => (date_time_ymd(2000, 1, 1), date_time_ymd(2020, 1, 1)),
            Validity::NotYet => (date_time_ymd(2998, 1, 1), date_time_ymd(2999, 1, 1)),
        };
        self.sign(params, &key)
    }

    /// Issues a certificate for these names that is valid now but has this defect.
    pub fn issue_defective(&self, names: &[&str], defect: Defect) -> Identity {
        let (key, mut params) = (key(), params(names));
        match defect {
            Defect::CommonName => {
                let name = names.first().copied().unwrap_or_default();
                params.subject_alt_names.clear();
                params.distinguished_name.push(DnType::CommonName, name);
            }
            Defect::ForClients => params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            Defect::SignedByNonAuthority => {
                let issuer = CertifiedIssuer::signed_by(self::params(names), self::key(), &self.0);
                let issuer = Authority(issuer.unwrap_or_else(|error| panic!("cannot create the certificate: {error}")));
                let signed = issuer.sign(params, &key);
                return Identity { certificate: signed.certificate.clone() + &issuer.pem(), ..signed };
            }
        }
        self.sign(params, &key)
    }

    fn sign(&self, params: CertificateParams, key: &KeyPair) -> Identity {
        let certificate =
            params.signed_by(key, &self.0).unwrap_or_else(|error| panic!("cannot create the certificate: {error}"));
        Identity::new(certificate.pem(), key)
    }
}

impl Identity {
    fn new(certificate: String, key: &KeyPair) -> Identity {
        let pin = crate::dist::sha256(&key.subject_public_key_info());
        Identity { certificate, key: key.serialize_pem(), pin }
    }

    /// Returns a self-signed certificate for these names.
    pub fn self_signed(names: &[&str]) -> Identity {
        let key = key();
        let certificate =
            params(names).self_signed(&key).unwrap_or_else(|error| panic!("cannot create the certificate: {error}"));
        Identity::new(certificate.pem(), &key)
    }

    /// Returns the configuration of a server that presents this certificate. If
    /// `clients` is given, clients must present a certificate of that authority.
    pub fn server(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        self.build(clients).unwrap_or_else(|error| panic!("cannot configure the TLS server: {error}"))
    }

    fn build(&self, clients: Option<&Authority>) -> Result<Arc<ServerConfig>, Box<dyn std::error::Error>> {
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone())?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        Ok(Arc::new(builder.with_single_cert(chain, key)?))
    }
}

fn key() -> KeyPair {
    KeyPair::generate().unwrap_or_else(|error| panic!("cannot generate a key: {error}"))
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).unwrap_or_else(|error| panic!("cannot create the certificate: {error}"))
}
