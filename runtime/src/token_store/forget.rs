//! Deletes and counts the tokens of a cache directory.

use super::directory::CacheDirectory;
use super::key::KEY_FILE;
use super::{PREFIX, TokenStore, TokenStoreError};
use crate::trust::Untrusted;
use rustix::fs::{AtFlags, OFlags};
use std::io;
use std::path::Path;

/// The reason why tokens were not deleted. The messages follow the name of the cache directory.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    #[error("tokens cannot be deleted: {0}")]
    Io(#[from] io::Error),
    #[error(
        "belongs to user {0}, so tokens in it cannot be deleted; run `wasm-cpi forget-tokens` as that user or as root"
    )]
    Owner(u32),
    #[error(transparent)]
    Untrusted(Untrusted),
    #[error("these files were not deleted: {}; delete them", .0.join(", "))]
    Remaining(Vec<String>),
}

impl From<TokenStoreError> for ForgetError {
    fn from(error: TokenStoreError) -> Self {
        match error {
            TokenStoreError::Io(error) => ForgetError::Io(error),
            TokenStoreError::Directory(Untrusted::Owner { owner, .. }) => ForgetError::Owner(owner),
            TokenStoreError::Directory(untrusted) => ForgetError::Untrusted(untrusted),
            other => ForgetError::Io(io::Error::other(other)),
        }
    }
}

/// Deletes all tokens and the key of a cache directory, and returns how many tokens could still be used.
/// Deletes as many files as it can.
pub fn forget_tokens(cache: &Path) -> Result<usize, ForgetError> {
    let directory = match CacheDirectory::open(cache) {
        Err(TokenStoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let count = count_trusted_tokens(cache).unwrap_or_default();
    let mut remaining = Vec::new();
    // No token can be used without the key.
    for name in [directory.names(KEY_FILE)?, directory.names(PREFIX)?].concat() {
        // A running call may still have the file open.
        if let Ok(file) = directory.open_trusted(&name, OFlags::RDWR) {
            let _ = file.set_len(0);
        }
        if let Err(error) = rustix::fs::unlinkat(&directory.descriptor, &name, AtFlags::empty()) {
            remaining.push(format!("{} ({error})", directory.path.join(&name).display()));
        }
    }
    if remaining.is_empty() { Ok(count) } else { Err(ForgetError::Remaining(remaining)) }
}

/// Returns how many tokens a cache directory keeps that can still be used. Fails if a file is not trusted.
pub fn count_tokens(cache: &Path) -> Result<usize, TokenStoreError> {
    let Some(store) = TokenStore::open_existing(cache)? else { return Ok(0) };
    usable_tokens(&store)?.try_fold(0, |count, usable| Ok(count + usize::from(usable?)))
}

/// Returns how many tokens can still be used, in files that are trusted.
fn count_trusted_tokens(cache: &Path) -> Result<usize, TokenStoreError> {
    let Some(store) = TokenStore::open_existing(cache)? else { return Ok(0) };
    Ok(usable_tokens(&store)?.filter(|usable| matches!(usable, Ok(true))).count())
}

/// Returns for each file of a token whether the token can still be used, or why the file is not trusted.
fn usable_tokens(store: &TokenStore) -> io::Result<impl Iterator<Item = Result<bool, TokenStoreError>>> {
    Ok(store.directory.names(PREFIX)?.into_iter().map(|name| store.holds_token(&name)))
}
