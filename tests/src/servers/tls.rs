//! Certificates, right and wrong, and servers that show them.

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

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    Now,
    Expired,
    NotYet,
}

/// What no client should take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    /// The name stands where names stood twenty years ago.
    CommonName,
    ForClients,
    /// Signed with the key of a certificate that is itself all right, and no authority's.
    ByNoAuthority,
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
        // Of two with one name, a client would blame the signature.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, key());
        Authority(issuer.unwrap_or_else(|error| panic!("no authority: {error}")))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// For these names or addresses.
    pub fn issue(&self, names: &[&str], validity: Validity) -> Identity {
        let (key, mut params) = (key(), params(names));
        (params.not_before, params.not_after) = match validity {
            Validity::Now => (date_time_ymd(2000, 1, 1), date_time_ymd(2999, 1, 1)),
            Validity::Expired => (date_time_ymd(2000, 1, 1), date_time_ymd(2020, 1, 1)),
            Validity::NotYet => (date_time_ymd(2998, 1, 1), date_time_ymd(2999, 1, 1)),
        };
        self.sign(params, &key)
    }

    /// For these names and for now, and odd otherwise.
    pub fn issue_odd(&self, names: &[&str], oddity: Oddity) -> Identity {
        let (key, mut params) = (key(), params(names));
        match oddity {
            Oddity::CommonName => {
                let name = names.first().copied().unwrap_or_default();
                params.subject_alt_names.clear();
                params.distinguished_name.push(DnType::CommonName, name);
            }
            Oddity::ForClients => params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            Oddity::ByNoAuthority => {
                let issuer = CertifiedIssuer::signed_by(self::params(names), self::key(), &self.0);
                let issuer = Authority(issuer.unwrap_or_else(|error| panic!("no certificate: {error}")));
                let signed = issuer.sign(params, &key);
                return Identity { certificate: signed.certificate.clone() + &issuer.pem(), ..signed };
            }
        }
        self.sign(params, &key)
    }

    fn sign(&self, params: CertificateParams, key: &KeyPair) -> Identity {
        let certificate = params.signed_by(key, &self.0).unwrap_or_else(|error| panic!("no certificate: {error}"));
        Identity::new(certificate.pem(), key)
    }
}

impl Identity {
    fn new(certificate: String, key: &KeyPair) -> Identity {
        let pin = crate::dist::sha256(&key.subject_public_key_info());
        Identity { certificate, key: key.serialize_pem(), pin }
    }

    /// Vouched for by nobody else.
    pub fn self_signed(names: &[&str]) -> Identity {
        let key = key();
        let certificate = params(names).self_signed(&key).unwrap_or_else(|error| panic!("no certificate: {error}"));
        Identity::new(certificate.pem(), &key)
    }

    /// A server that shows it, and wants a certificate of `clients` if there are any.
    pub fn server(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        self.build(clients).unwrap_or_else(|error| panic!("no TLS server: {error}"))
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
    KeyPair::generate().unwrap_or_else(|error| panic!("no key: {error}"))
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).unwrap_or_else(|error| panic!("no certificate: {error}"))
}
