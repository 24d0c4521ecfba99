use super::run;
use super::server::{Server, response};
use crate::net::connection_pool::ConnectionPool;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::exchange::{Caps, Exchange, Received, SendBody, WireRequest};
use crate::net::tls::{ClientIdentity, TlsSettings, TrustedCa, client_config};
use ::ring::digest::{SHA256, digest};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData, date_time_ymd};
use reqwest::Method;
use reqwest::header::HeaderMap;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasm_cpi_policy::Tls;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::secret::Secret;

pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns the configuration of a server with a certificate for this name.
    pub(super) fn server(&self, name: &str) -> Arc<ServerConfig> {
        let (certificate, key) = self.issue(name, 2999);
        server_config(&certificate, &key, None)
    }

    fn issue(&self, name: &str, last_year: i32) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = date_time_ymd(last_year, 1, 1);
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}

fn server_config(certificate: &rcgen::Certificate, key: &KeyPair, clients: Option<&Authority>) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key).unwrap())
}

/// Starts a server with a certificate of the authority for this name.
pub(super) fn trusted(
    authority: &Authority,
    name: &str,
    handler: impl Fn(&super::server::Seen, &mut dyn super::server::Wire) + Send + Sync + 'static,
) -> Server {
    Server::tls(authority.server(name), handler)
}

fn hello(config: Arc<ServerConfig>) -> Server {
    Server::tls(config, |_, wire| wire.write_all(&response("200 OK", "", "hello")).unwrap())
}

fn get(server: &Server, host: &str, settings: &TlsSettings<'_>) -> Result<Received, HttpError> {
    let exchange = Exchange {
        request: WireRequest {
            method: Method::GET,
            destination: Destination::parse(&format!("https://{host}:{}/v1?k=hunter2", server.address.port()), 8192)
                .unwrap(),
            headers: HeaderMap::new(),
            credential_owner: String::new(),
            allows_reuse: true,
            holds_image: false,
        },
        proxy: None,
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
        tls: Some((Tls::default(), Arc::new(client_config(settings).unwrap()))),
        caps: Caps { connect: Duration::from_millis(500), ..Caps::of(&crate::limits::Limits::default()) },
        deadline: Instant::now() + Duration::from_secs(5),
    };
    run(exchange.run(SendBody::None, &ConnectionPool::default()))
}

fn trusting_only(pem: &str) -> Option<TrustedCa<'_>> {
    Some(TrustedCa { setting: "tls.ca", pem })
}

fn refused(server: &Server, host: &str, settings: &TlsSettings<'_>, said: &str) {
    let error = get(server, host, settings).err().expect(said);
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Tls, false), "{said}: {error}");
    assert!(error.explained().contains(said) && !error.explained().contains("hunter2"), "{said}: {error:?}");
    assert!(error.message.contains(&format!("GET https://{host}:{}/v1: TLS failed", server.address.port())), "{error}");
    assert_eq!(server.requests().len(), 0, "{said}");
}

#[test]
fn a_certificate_must_have_the_right_name_time_and_issuer() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let ca = authority.pem();
    let trusting = TlsSettings { ca: trusting_only(&ca), ..TlsSettings::default() };

    let (certificate, key) = authority.issue("api.test", 2999);
    let server = hello(server_config(&certificate, &key, None));
    refused(&server, "other.test", &trusting, "not valid for name");
    refused(&server, "127.0.0.1", &trusting, "not valid for name");
    refused(&server, "api.test", &TlsSettings::default(), "UnknownIssuer");
    refused(&server, "api.test", &TlsSettings { ca: trusting_only(&stranger.pem()), ..TlsSettings::default() }, "");
    assert_eq!(get(&server, "api.test", &trusting).ok().unwrap().body, b"hello");
    assert_eq!(server.requests()[0].header("host"), Some(format!("api.test:{}", server.address.port()).as_str()));

    let (expired, key) = authority.issue("api.test", 2020);
    refused(&hello(server_config(&expired, &key, None)), "api.test", &trusting, "expired");

    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["api.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    refused(&hello(server_config(&own, &key, None)), "api.test", &trusting, "");
    let (literal, key) = authority.issue("127.0.0.1", 2999);
    assert_eq!(get(&hello(server_config(&literal, &key, None)), "127.0.0.1", &trusting).ok().unwrap().status, 200);
}

#[test]
fn a_pin_is_required_in_addition_to_a_trusted_authority() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (ca, foreign) = (authority.pem(), stranger.pem());
    let (certificate, key) = authority.issue("api.test", 2999);
    let server = hello(server_config(&certificate, &key, None));
    let pin = |bytes: &[u8]| -> [u8; 32] { digest(&SHA256, bytes).as_ref().try_into().unwrap() };
    let key_pin = pin(&key.subject_public_key_info());
    let certificate_pin = pin(certificate.der());
    refused(&server, "api.test", &TlsSettings { ca: trusting_only(&ca), pins: &[[1; 32]], client: None }, "pin_sha256");
    refused(&server, "api.test", &TlsSettings { ca: trusting_only(&foreign), pins: &[key_pin], client: None }, "");
    for pins in [[[1; 32], key_pin], [certificate_pin, [1; 32]]] {
        let settings = TlsSettings { ca: trusting_only(&ca), pins: &pins, client: None };
        assert_eq!(get(&server, "api.test", &settings).ok().unwrap().status, 200);
    }
}

#[test]
fn a_client_certificate_is_sent_if_it_is_configured() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let ca = authority.pem();
    let (certificate, key) = authority.issue("api.test", 2999);
    let server = hello(server_config(&certificate, &key, Some(&clients)));
    let (own, own_key) = clients.issue("cpi", 2999);
    let (chain, own_key) = (own.pem(), Secret::new(own_key.serialize_pem()));
    let client = Some(ClientIdentity { chain: &chain, key: &own_key });
    let received = get(&server, "api.test", &TlsSettings { ca: trusting_only(&ca), client, pins: &[] });
    assert_eq!(received.ok().unwrap().body, b"hello");
    // In TLS 1.3 the client learns this only after it has sent the request.
    let error =
        get(&server, "api.test", &TlsSettings { ca: trusting_only(&ca), ..TlsSettings::default() }).err().unwrap();
    assert!(error.kind == HttpErrorKind::Tls && error.explained().contains("CertificateRequired"), "{error:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_without_tls_gets_no_request() {
    let plain = Server::raw(|mut stream, _| {
        let _ = std::io::Read::read(&mut stream, &mut [0; 1024]);
        let _ = std::io::Write::write_all(&mut stream, &response("400 Bad Request", "", ""));
    });
    refused(&plain, "api.test", &TlsSettings::default(), "");
    let closing = Server::raw(|stream, _| drop(stream));
    refused(&closing, "api.test", &TlsSettings::default(), "during the handshake");
    // The server responds with TLS 1.0.
    let old = Server::raw(|mut stream, _| {
        let _ = std::io::Read::read(&mut stream, &mut [0; 1024]);
        let hello = [&[22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1][..], &[7; 32], &[0, 0, 47, 0]].concat();
        let _ = std::io::Write::write_all(&mut stream, &hello);
        std::thread::sleep(Duration::from_millis(200));
    });
    refused(&old, "api.test", &TlsSettings::default(), "");
    let silent = Server::raw(|_stream, _| std::thread::sleep(Duration::from_secs(2)));
    let error = get(&silent, "api.test", &TlsSettings::default()).err().unwrap();
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Timeout, false), "{error}");
    assert!(error.message.contains("limits.connect_seconds"), "{error}");
}
