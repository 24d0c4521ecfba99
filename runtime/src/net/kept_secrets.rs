//! The files in which tokens of logins and temporary keys are kept for later calls.

use crate::net::credentials;
use crate::net::login::{self, KeptTokens};
use crate::net::proxy::ProxyConfig;
use crate::net::tls_configs::TlsConfigs;
use crate::token_store::{TokenFile, TokenStore, TokenStoreError};
use crate::vault::Vault;
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::Path;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::Policy;
use wasm_cpi_policy::secret::Secret;

/// What earlier calls kept. The default is nothing, and then nothing is kept.
#[derive(Default)]
pub struct KeptSecrets {
    /// The tokens of logins.
    pub(in crate::net) tokens: KeptTokens,
    /// The temporary keys that sign requests.
    pub(in crate::net) keys: KeptTokens,
}

/// What the names of all files depend on, beside the login or the credentials.
struct Owner<'a> {
    store: &'a TokenStore,
    /// The guest and its job.
    names: &'a [&'a [u8]],
    proxy: Vec<Secret>,
}

impl KeptSecrets {
    /// Opens the files of a policy's logins and credentials. `owner` says whose the tokens are: the guest and its job.
    /// They also depend on the proxies and on the policy's files, which are in the directory `files`. Tokens of earlier
    /// calls are secrets from now on: a server may show them to a call that does not use their login.
    pub fn open(
        store: &TokenStore,
        owner: &[&[u8]],
        policy: &Policy,
        proxy: Option<&ProxyConfig>,
        files: &Path,
        vault: &Vault,
    ) -> Result<KeptSecrets, TokenStoreError> {
        let tls = TlsConfigs::new(files.to_owned());
        let proxy = proxy.map(ProxyConfig::token_key_parts).unwrap_or_default();
        let owner = Owner { store, names: owner, proxy };
        let mut tokens = HashMap::new();
        for login in policy.logins.values() {
            // A login whose certificates cannot be read fails later, with its own error.
            let Some(certificates) = tls.certificates(&login.tls) else { continue };
            let file = owner.file(login::token_depends_on(login).into_iter().chain(certificates))?;
            for token in valid_tokens(&file) {
                Check::TokenKnown.perform(|| login::register_token(vault, login, token));
            }
            tokens.insert(login.name.clone(), file);
        }
        let mut keys = HashMap::new();
        for one in policy.credentials.values().filter(|one| one.are_temporary()) {
            let certificates = credentials::tls_of(one).map_or_else(|| Some(Vec::new()), |of| tls.certificates(of));
            let Some(certificates) = certificates else { continue };
            let depends_on = credentials::keys_depend_on(&policy.credentials, one);
            let file = owner.file(depends_on.into_iter().chain(certificates))?;
            for token in valid_tokens(&file) {
                Check::TokenKnown.perform(|| credentials::register_keys(vault, &one.name, &token));
            }
            keys.insert(one.name.clone(), file);
        }
        Ok(KeptSecrets { tokens: KeptTokens::new(tokens), keys: KeptTokens::new(keys) })
    }
}

impl Owner<'_> {
    /// Returns the file of a token that depends on these values.
    fn file(&self, depends_on: impl Iterator<Item = Secret>) -> Result<TokenFile, TokenStoreError> {
        let values: Vec<Secret> = depends_on.collect();
        let values = values.iter().chain(&self.proxy).map(|value| value.reveal().as_bytes());
        let all: Vec<&[u8]> = self.names.iter().copied().chain(values).collect();
        self.store.file(&all)
    }
}

/// Returns the tokens in a file that a server may still accept, also those that were replaced.
fn valid_tokens(file: &TokenFile) -> Vec<Secret> {
    let tokens = file.read().map(|record| record.valid_tokens(Timestamp::now().as_second()));
    tokens.unwrap_or_default().into_iter().map(|valid| valid.token).collect()
}
