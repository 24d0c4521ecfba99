//! Holds all secrets of a call, and the seals that represent them in the guest.
//!
//! A seal is 40 random alphanumeric characters. It is valid only in this call: only
//! slots (`net::slots`) replace it by its secret. The vault also searches for
//! secrets: `leak_in` is the tripwire on responses and results, and `redact` removes
//! secrets from texts for operators. Only `open` returns a secret.
//!
//! A guest must not learn anything about a secret from the vault. So no function that
//! a guest can reach returns a redacted text, and no seal, cost or refusal depends on
//! whether a value equals a secret: two runs that differ only in secrets look the same to the guest.

#[cfg(feature = "mutation-testing")]
mod mutants;
mod needles;
mod redaction;
mod scanner;
mod views;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use needles::Form;
pub use scanner::{CheckEnd, SearchDeadline, SearchStopped};
use scanner::{Scanner, Searched};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::{Layer, Secret};

/// Shorter secrets are not redacted, because they occur in most texts by chance.
const MIN_REDACTED: usize = 6;
/// Shorter credentials do not count as leaks, because they occur in responses by chance.
const MIN_TRIPWIRE: usize = 12;
/// The number of values that a call may capture. Each one costs memory, and the time to rebuild
/// the search. `MAX_CAPTURE` bounds their sizes: a budget of bytes would measure them.
const MAX_CAPTURES: usize = 64;
/// The size of the largest value that can be captured. Servers accept no larger headers.
pub const MAX_CAPTURE: usize = 16 * 1024;
const SEAL_LENGTH: usize = 40;
/// The bytes after a cut that are read, too, so that an escape which the cut divides is decoded.
pub const LOOKAHEAD: usize = 1024;

/// The secrets of one call.
#[derive(Default)]
pub struct Vault {
    inner: Mutex<Inner>,
    check_end: OnceLock<CheckEnd>,
}

/// What a secret is, which decides where it is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// A value of the operator that need not be a credential, such as the name of a region.
    /// It is redacted, but an answer may hold it.
    Value,
    /// A credential of the operator or of the VM. It is redacted, and no answer may hold it.
    Credential,
    /// A credential that a server chose: a token, a captured value, settings of the registry. It
    /// is treated like the others, except that it hides nothing in audit lines: a server could otherwise
    /// choose what they show.
    FromServer,
    /// The token of a login, which a server chose, but which no guest could influence. So a withheld text
    /// that holds it is a leak as well.
    Token,
}

/// Texts up to this length share one index.
const SHORT_TEXT: usize = 512;

/// The secret that a seal represents.
#[derive(Clone, Debug)]
pub struct Sealed {
    pub name: String,
    pub secret: Secret,
    pub layer: Layer,
}

#[derive(Default)]
struct Inner {
    known: Vec<Known>,
    seals: BTreeMap<String, Arc<Sealed>>,
    /// The seals of values that are read again and again, by their places.
    places: HashMap<String, String>,
    /// The number of captured values.
    captured: usize,
    // The following are built when they are first used, and dropped when a secret is added.
    // An index may lack secrets that are too long for the texts that were searched so far.
    credentials: Option<Arc<SecretIndex>>,
    secrets: Option<Arc<SecretIndex>>,
    sealed: Option<Arc<SealIndex>>,
}

#[derive(Clone)]
struct Known {
    name: String,
    secret: Secret,
    kind: SecretKind,
}

/// Searches for many secrets at once.
struct SecretIndex {
    /// The secrets that the needles belong to.
    known: Vec<Known>,
    scanner: Scanner,
    /// The length of the longest text that it can search.
    longest_text: usize,
}

/// Searches for all seals at once.
struct SealIndex {
    /// The seals that the needles belong to, and their names.
    sealed: Vec<(String, String)>,
    scanner: Scanner,
}

impl Vault {
    pub fn new() -> Self {
        Vault::default()
    }

    /// Stops searches that take long once the call is over. Only the first function is kept.
    pub fn stop_searches_when(&self, check_end: CheckEnd) {
        let _ = self.check_end.set(check_end);
    }

    /// Registers a credential and returns a new seal for it.
    pub fn seal(&self, name: &str, secret: Secret, layer: Layer) -> String {
        self.seal_as(SecretKind::Credential, name, secret, layer)
    }

    /// Registers a secret and returns a new seal for it, even if the same value has one: equal
    /// seals would tell the guest that two secrets are equal.
    pub fn seal_as(&self, kind: SecretKind, name: &str, secret: Secret, layer: Layer) -> String {
        let mut inner = self.lock();
        #[cfg(feature = "mutation-testing")]
        if let Some(seal) = mutants::seal_of_equal_value(&inner, &secret) {
            return seal;
        }
        let seal = random_text();
        inner.register(name, secret.clone(), kind);
        inner.seals.insert(seal.clone(), Arc::new(Sealed { name: name.to_owned(), secret, layer }));
        inner.sealed = None;
        seal
    }

    /// Seals a value that a guest may read more than once. The same place
    /// always has the same seal, which represents the value that was read last.
    pub fn seal_at(&self, place: &str, kind: SecretKind, name: &str, secret: Secret, layer: Layer) -> String {
        let mut inner = self.lock();
        let Some(seal) = inner.places.get(place).cloned() else {
            drop(inner);
            let seal = self.seal_as(kind, name, secret, layer);
            self.lock().places.insert(place.to_owned(), seal.clone());
            return seal;
        };
        // Reading a value again must not take more memory each time. The guest cannot observe this.
        if inner.seals.get(&seal).is_none_or(|sealed| sealed.secret != secret) {
            inner.register(name, secret.clone(), kind);
            inner.seals.insert(seal.clone(), Arc::new(Sealed { name: name.to_owned(), secret, layer }));
        }
        seal
    }

    /// Registers a captured value and returns a new seal for it, whatever the value is. Returns
    /// `None` if the call has captured as many values as it may.
    pub fn seal_captured(&self, name: &str, secret: Secret, layer: Layer) -> Option<String> {
        let mut inner = self.lock();
        inner.captured += cost_of_capture(&inner, &secret);
        let room = Check::CaptureTotal.accepts(inner.captured <= MAX_CAPTURES);
        drop(inner);
        room.then(|| self.seal_as(SecretKind::FromServer, name, secret, layer))
    }

    /// Returns true if this name is that of a value of the operator, and not that of a credential.
    pub fn is_value(&self, name: &str) -> bool {
        let inner = self.lock();
        let mut named = inner.known.iter().filter(|known| known.name == name).peekable();
        named.peek().is_some() && named.all(|known| known.kind == SecretKind::Value)
    }

    /// Registers a credential without a seal, for redaction and the tripwire.
    pub fn register(&self, name: &str, secret: Secret) {
        self.register_as(SecretKind::Credential, name, secret);
    }

    /// Registers a secret without a seal. A secret that is known under the same name stays as it is.
    pub fn register_as(&self, kind: SecretKind, name: &str, secret: Secret) {
        let mut inner = self.lock();
        let same = |known: &Known| known.kind == kind && known.name == name && known.secret == secret;
        if !inner.known.iter().any(same) {
            inner.register(name, secret, kind);
        }
    }

    /// Returns the secret of a seal.
    pub fn open(&self, seal: &str) -> Option<Arc<Sealed>> {
        self.lock().seals.get(seal).cloned()
    }

    /// Returns the seals that occur unchanged in the bytes, each once, in the order of their first
    /// occurrences. A seal that a stopped search did not find is sent as it is, and has no value.
    pub fn seals_in(&self, bytes: &[u8]) -> Vec<String> {
        let index = self.seal_index();
        let mut found: Vec<(usize, usize)> = Vec::new();
        let _: Searched<()> = index.scanner.scan(bytes, &self.search_deadline(), &mut |needle, span| {
            if needle.form == Form::Plain && !found.iter().any(|(_, owner)| *owner == needle.owner) {
                found.push((span.start, needle.owner));
            }
            ControlFlow::Continue(())
        });
        found.sort_unstable();
        found.into_iter().map(|(_, owner)| index.sealed[owner].0.clone()).collect()
    }

    /// Returns the name of a seal that occurs in a changed form, and how it was changed. This
    /// helps authors of guests and protects nothing: a changed seal that is not found is sent as
    /// it is, and has no value.
    pub fn transformed_seal_in(&self, bytes: &[u8]) -> Option<(String, Form)> {
        let (index, deadline) = (self.seal_index(), self.search_deadline());
        let mut verbatim: HashMap<usize, usize> = HashMap::new();
        let found = views::visit_all(bytes, views::Track::No, &mut |view, encoding| {
            let mut plain: HashMap<usize, usize> = HashMap::new();
            index.scanner.scan(&view.bytes, &deadline, &mut |needle, span| {
                let (seal, name) = &index.sealed[needle.owner];
                match needle.form {
                    Form::Plain => *plain.entry(needle.owner).or_default() += 1,
                    Form::Half if is_within(seal, &view.bytes, &span) => {}
                    Form::OtherCase if view.bytes[span.clone()] == *seal.as_bytes() => {}
                    form => return ControlFlow::Break((name.clone(), form)),
                }
                ControlFlow::Continue(())
            })?;
            if encoding == Form::Plain {
                verbatim = plain;
                return ControlFlow::Continue(());
            }
            // A view also holds the unchanged seals: only additional ones were encoded.
            let new = plain.iter().find(|(owner, count)| verbatim.get(owner).is_none_or(|before| *count > before));
            new.map_or(ControlFlow::Continue(()), |(owner, _)| {
                ControlFlow::Break(Ok((index.sealed[*owner].1.clone(), encoding)))
            })
        });
        found.break_value().and_then(Result::ok)
    }

    /// The tripwire: returns the name of a credential that occurs in some encoding. Ignores texts
    /// that differ from it in case, because they may be other words, and halves, because a guest could
    /// guess one half after the other.
    pub fn leak_in(&self, bytes: &[u8]) -> Result<Option<String>, SearchStopped> {
        self.leak_of_kinds(bytes, &|_| true)
    }

    /// Searches a text that the guest does not get. Values that a server chose do not count: a guest
    /// that makes a server return what it was given could otherwise choose what is searched for, and so read
    /// the text by its endings.
    pub fn leak_in_unseen(&self, bytes: &[u8]) -> Result<Option<String>, SearchStopped> {
        self.leak_of_kinds(bytes, &|kind| Check::TripwireUnseen.accepts(kind != SecretKind::FromServer))
    }

    fn leak_of_kinds(
        &self,
        bytes: &[u8],
        counts: &dyn Fn(SecretKind) -> bool,
    ) -> Result<Option<String>, SearchStopped> {
        let (index, deadline) = (self.credential_index(bytes.len()), self.search_deadline());
        let found = views::visit_all(bytes, views::Track::No, &mut |view, _| {
            index.scanner.scan(&view.bytes, &deadline, &mut |needle, _| match needle.form {
                Form::OtherCase | Form::Half => ControlFlow::Continue(()),
                _ if !counts(index.known[needle.owner].kind) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(index.known[needle.owner].name.clone()),
            })
        });
        found.break_value().transpose()
    }

    /// Returns the index for the tripwire in a text of this length.
    fn credential_index(&self, length: usize) -> Arc<SecretIndex> {
        let mut inner = self.lock();
        let Inner { known, credentials, .. } = &mut *inner;
        let long = |one: &&Known| one.secret.reveal().trim().len() >= MIN_TRIPWIRE;
        let credential = |one: &&Known| Check::TripwireCredentials.accepts(one.kind != SecretKind::Value);
        SecretIndex::reuse(credentials, known.iter().filter(long).filter(credential), length)
    }

    /// Returns the index for redaction in a text of this length.
    fn secret_index(&self, length: usize) -> Arc<SecretIndex> {
        let mut inner = self.lock();
        let Inner { known, secrets, .. } = &mut *inner;
        SecretIndex::reuse(secrets, known.iter(), length)
    }

    fn seal_index(&self) -> Arc<SealIndex> {
        let mut inner = self.lock();
        let Inner { seals, sealed, .. } = &mut *inner;
        Arc::clone(sealed.get_or_insert_with(|| Arc::new(SealIndex::new(seals))))
    }

    /// Returns the deadline of a search that starts now.
    pub fn search_deadline(&self) -> SearchDeadline<'_> {
        SearchDeadline::new(self.check_end.get())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete before the lock is released.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        write!(f, "Vault({} secrets, {} seals)", inner.known.len(), inner.seals.len())
    }
}

impl Inner {
    fn register(&mut self, name: &str, secret: Secret, kind: SecretKind) {
        let credential = secret.credential_in_url();
        self.known.push(Known { name: name.to_owned(), secret, kind });
        (self.credentials, self.secrets) = (None, None);
        if let Some(credential) = credential {
            // The password of a URL is a credential, whatever the URL is called.
            let kind = if kind == SecretKind::Value { SecretKind::Credential } else { kind };
            self.register(&format!("{name}.password"), credential, kind);
        }
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

/// Returns what a captured value counts: the same, whatever it is.
#[cfg(not(feature = "mutation-testing"))]
fn cost_of_capture(_: &Inner, _: &Secret) -> usize {
    1
}

#[cfg(feature = "mutation-testing")]
use mutants::cost_of_capture;

/// Returns true if the half of a seal at `span` is part of the complete seal.
fn is_within(seal: &str, bytes: &[u8], span: &Range<usize>) -> bool {
    bytes[span.start..].starts_with(seal.as_bytes()) || bytes[..span.end].ends_with(seal.as_bytes())
}

/// Returns 40 random alphanumeric characters, which no guest and no server can predict: a seal,
/// or a boundary.
///
/// # Panics
/// If the kernel returns no random bytes, because no seal would be safe then.
pub fn random_text() -> String {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut seal = String::with_capacity(SEAL_LENGTH);
    while seal.len() < SEAL_LENGTH {
        let mut bytes = [0; SEAL_LENGTH];
        getrandom::fill(&mut bytes).expect("the kernel returns random bytes");
        // Each byte gives six bits. Values without a letter are skipped, so all letters are equally likely.
        let letters = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(byte & 63)));
        seal.extend(letters.map(|letter| char::from(*letter)).take(SEAL_LENGTH - seal.len()));
    }
    seal
}
