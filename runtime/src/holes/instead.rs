//! What a program without a check would do, where leaving the check out is not
//! enough: builds for tests of the tests alone have it.

use super::Check;
use crate::net::resolve::Resolver;
use crate::sandbox::state::State;
use crate::vault::Vault;
use reqwest::dns::Addrs;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wasmtime::component::{Component, Linker};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem;
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

/// Looks a name up when connecting to it, as clients do.
pub async fn asked_again(name: String) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
    let found = Resolver::system().resolve(&name, Instant::now() + Duration::from_secs(10)).await?;
    Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))))
}

/// Agent settings in place of their seal.
pub fn settings(seal: String, vault: &Vault) -> String {
    match vault.open(&seal) {
        Some(sealed) if !Check::SealedAgent.on() => sealed.secret.reveal().to_owned(),
        _ => seal,
    }
}

/// WASI as other programs give it.
pub fn context(wasi: &mut WasiCtxBuilder) {
    if !Check::WasiEnvironment.on() {
        wasi.inherit_env();
    }
    if !Check::WasiArguments.on() {
        wasi.inherit_args();
    }
    if !Check::WasiFilesystem.on() {
        // Who may not open it has no files either.
        let _ = wasi.preopened_dir("/", "/", FsPerms::ReadWrite);
    }
}

/// Says whether the interface is the real one now.
pub fn files(linker: &mut Linker<State>, name: &str) -> wasmtime::Result<bool> {
    if Check::WasiFilesystem.on() || !name.starts_with("wasi:filesystem/") {
        return Ok(false);
    }
    if name.starts_with("wasi:filesystem/types@") {
        filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    } else {
        filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    }
    Ok(true)
}

/// Takes a module whatever it imports.
pub fn any_import(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    if Check::Imports.on() { Ok(()) } else { linker.define_unknown_imports_as_traps(component) }
}

pub fn exit_counts(error: &wasmtime::Error) -> bool {
    !Check::ExitIsFailure.on() && error.downcast_ref::<I32Exit>().is_some_and(|exit| exit.0 == 0)
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
