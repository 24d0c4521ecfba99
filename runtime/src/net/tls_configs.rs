//! The TLS configurations of a call's grants and logins, and the files that they are made of.

use super::transport::Route;
use crate::failure::Who;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::preopened::PreopenedFile;
use crate::net::tls::{self, ClientIdentity, TlsError, TlsSettings, TrustedCa};
use rustls::ClientConfig;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{Pem, Policy, Tls};

/// Makes each TLS configuration once per call.
pub(super) struct TlsConfigs {
    /// The directory of the files that the policy names.
    directory: PathBuf,
    /// The open files, by the names in the policy. Unset before `open_files`.
    preopened: OnceLock<HashMap<String, PreopenedFile>>,
    /// The configurations by their settings, so that certificates are read once.
    configs: Mutex<Vec<(Tls, Arc<ClientConfig>)>>,
}

impl TlsConfigs {
    /// Creates configurations whose files are in this directory. Opens nothing.
    pub(super) fn new(directory: PathBuf) -> Self {
        TlsConfigs { directory, preopened: OnceLock::new(), configs: Mutex::default() }
    }

    /// Opens every file that the policy names, and returns their number.
    pub(super) fn open_files(&self, policy: &Policy) -> usize {
        let all = policy.tls_settings().flat_map(Tls::files);
        let preopened = self
            .preopened
            .get_or_init(|| all.map(|name| (name.to_owned(), PreopenedFile::new(self.directory.join(name)))).collect());
        preopened.values().for_each(PreopenedFile::open);
        preopened.len()
    }

    /// Returns the TLS configuration of a grant or a login.
    pub(super) fn config(&self, route: &Route<'_>) -> Result<Arc<ClientConfig>, HttpError> {
        let mut known = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) = known.iter().find(|(settings, _)| settings == route.tls) {
            return Ok(Arc::clone(config));
        }
        let config = self.build(route.tls).map_err(|error| {
            let message = format!("{} cannot use TLS as the policy says; the log says why", route.name);
            let failed = HttpError::failed(Who::Config, HttpErrorKind::Tls, message).with_detail(error.to_string());
            HttpError { check: error.check(), ..failed }
        })?;
        let config = Arc::new(config);
        known.push((route.tls.clone(), Arc::clone(&config)));
        Ok(config)
    }

    fn build(&self, tls: &Tls) -> Result<ClientConfig, TlsError> {
        let ca = tls.ca.as_ref().map(|pem| self.read_pem(pem, tls::pem_in)).transpose()?;
        let client = match &tls.client {
            None => None,
            Some(client) => Some((self.read_pem(&client.cert, tls::pem_in)?, self.read_pem(&client.key, tls::key_in)?)),
        };
        let client = client.as_ref().map(|(cert, key)| ClientIdentity { chain: cert.reveal(), key });
        let ca = ca.as_ref().map(|ca| TrustedCa { setting: "tls.ca", pem: ca.reveal() });
        let settings = TlsSettings { ca, client, pins: &tls.pin_sha256 };
        tls::client_config(&settings)
    }

    /// Returns the texts of these certificates and keys; `None` if one cannot be read.
    pub(super) fn certificates(&self, tls: &Tls) -> Option<Vec<Secret>> {
        let client = tls.client.iter().flat_map(|client| [&client.cert, &client.key]);
        tls.ca.iter().chain(client).map(|pem| self.read_pem(pem, tls::pem_in).ok()).collect()
    }

    fn read_pem(&self, pem: &Pem, read: fn(&PreopenedFile) -> Result<String, TlsError>) -> Result<Secret, TlsError> {
        match pem {
            Pem::Inline(text) => Ok(text.clone()),
            Pem::File(name) => match self.preopened.get().and_then(|files| files.get(name)) {
                Some(preopened) => read(preopened).map(Secret::new),
                None => read(&PreopenedFile::new(self.directory.join(name))).map(Secret::new),
            },
        }
    }
}
