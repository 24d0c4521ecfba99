//! The indexes with which the vault searches for all of its secrets, or for all of its seals, at once.

use super::scanner::Scanner;
use super::{Inner, Known, MIN_TRIPWIRE, Sealed, SecretKind, Vault, needles};
use std::collections::BTreeMap;
use std::sync::Arc;
use wasm_cpi_checks::Check;

/// Texts up to this length share one index.
const SHORT_TEXT: usize = 512;

/// Searches for many secrets at once.
pub(super) struct SecretIndex {
    /// The secrets that the needles belong to.
    pub(super) known: Vec<Known>,
    pub(super) scanner: Scanner,
    /// The length of the longest text that it can search.
    longest_text: usize,
}

/// Searches for all seals at once.
pub(super) struct SealIndex {
    /// The seals that the needles belong to, and their names.
    pub(super) sealed: Vec<(String, String)>,
    pub(super) scanner: Scanner,
}

impl Vault {
    /// Returns the index for the tripwire in a text of this length.
    pub(super) fn credential_index(&self, length: usize) -> Arc<SecretIndex> {
        let mut inner = self.lock();
        let Inner { known, credentials, .. } = &mut *inner;
        let long = |one: &&Known| one.secret.reveal().trim().len() >= MIN_TRIPWIRE;
        let credential = |one: &&Known| Check::TripwireCredentials.accepts(one.kind != SecretKind::Value);
        SecretIndex::reuse(credentials, known.iter().filter(long).filter(credential), length)
    }

    /// Returns the index for redaction in a text of this length.
    pub(super) fn secret_index(&self, length: usize) -> Arc<SecretIndex> {
        let mut inner = self.lock();
        let Inner { known, secrets, .. } = &mut *inner;
        SecretIndex::reuse(secrets, known.iter(), length)
    }

    pub(super) fn seal_index(&self) -> Arc<SealIndex> {
        let mut inner = self.lock();
        let Inner { seals, sealed, .. } = &mut *inner;
        Arc::clone(sealed.get_or_insert_with(|| Arc::new(SealIndex::new(seals))))
    }
}

impl SecretIndex {
    /// Returns the index for a text of this length, and replaces the last one if that is for shorter texts.
    /// Most texts of a call are short lines, and the longest secrets, agent settings, cost the most.
    fn reuse<'a>(
        last: &mut Option<Arc<SecretIndex>>,
        known: impl Iterator<Item = &'a Known>,
        length: usize,
    ) -> Arc<SecretIndex> {
        match last {
            Some(index) if length <= index.longest_text => Arc::clone(index),
            _ => Arc::clone(last.insert(Arc::new(SecretIndex::new(known, length)))),
        }
    }

    fn new<'a>(known: impl Iterator<Item = &'a Known>, length: usize) -> Self {
        let longest_text = length.max(SHORT_TEXT).checked_next_power_of_two().unwrap_or(usize::MAX);
        // A decoded text can be longer than the original, by half if it was UTF-16.
        let fits = |known: &&Known| needles::shortest(&known.secret) <= longest_text.saturating_mul(2);
        let known: Vec<Known> = known.filter(fits).cloned().collect();
        let needles = known.iter().enumerate().flat_map(|(owner, known)| needles::of_secret(owner, &known.secret));
        SecretIndex { scanner: Scanner::new(needles.collect()), known, longest_text }
    }
}

impl SealIndex {
    fn new(seals: &BTreeMap<String, Arc<Sealed>>) -> Self {
        let sealed: Vec<_> = seals.iter().map(|(seal, sealed)| (seal.clone(), sealed.name.clone())).collect();
        let needles = sealed.iter().enumerate().flat_map(|(owner, (seal, _))| needles::of_seal(owner, seal));
        SealIndex { scanner: Scanner::new(needles.collect()), sealed }
    }
}
