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
mod seal_search;
mod search_index;
mod signatures;
mod tripwire;
mod views;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use needles::Form;
pub use scanner::{CheckEnd, SearchDeadline, SearchStopped};
use search_index::{SealIndex, SecretIndex};
use signatures::Signatures;
pub use views::visit_decoded;
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
    signatures: Signatures,
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

/// Returns what a captured value counts: the same, whatever it is.
#[cfg(not(feature = "mutation-testing"))]
fn cost_of_capture(_: &Inner, _: &Secret) -> usize {
    1
}

#[cfg(feature = "mutation-testing")]
use mutants::cost_of_capture;

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
