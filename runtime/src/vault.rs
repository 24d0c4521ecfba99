//! Holds all secrets of a call, and the seals that represent them in the guest.
//!
//! A seal is 40 random alphanumeric characters. It is valid only in this call: only
//! slots (`net::slots`) replace it by its secret. The vault also searches for
//! secrets: `leak_in` is the tripwire on responses, and `redact` removes secrets
//! from texts for logs and answers. Only `open` returns a secret.

mod needles;
mod scanner;
mod views;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use needles::{CASE, PLAIN, SPLIT};
use scanner::Scanner;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::{Layer, Secret};

/// Shorter secrets are not redacted, because they occur in most texts by chance.
const MIN_REDACTED: usize = 6;
/// Shorter secrets do not count as leaks, because they occur in responses by chance.
const MIN_TRIPWIRE: usize = 12;
/// The total size of the secrets that a call may capture. Each one costs memory, and the time to
/// rebuild the search, so it counts as at least `MIN_CAPTURED` bytes.
const MAX_CAPTURED: usize = 1024 * 1024;
const MIN_CAPTURED: usize = 4 * 1024;
const SEAL_LENGTH: usize = 40;

/// The secrets of one call.
#[derive(Default)]
pub struct Vault {
    inner: Mutex<Inner>,
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
    /// The total size of the captured secrets.
    captured: usize,
    /// Built when it is first used, and dropped when a secret is added.
    index: Option<Arc<Index>>,
}

#[derive(Clone)]
struct Known {
    name: String,
    secret: Secret,
}

/// Searches for all secrets and all seals at once.
struct Index {
    /// The secrets that the needles in `secrets` belong to.
    known: Vec<Known>,
    secrets: Scanner,
    /// The seals that the needles in `seals` belong to, and their names.
    sealed: Vec<(String, String)>,
    seals: Scanner,
}

impl Vault {
    pub fn new() -> Self {
        Vault::default()
    }

    /// Registers a secret and returns its seal. The same name and value get the same seal, with
    /// the stricter of their layers.
    pub fn seal(&self, name: &str, secret: Secret, layer: Layer) -> String {
        let mut inner = self.lock();
        let same = |sealed: &Arc<Sealed>| sealed.name == name && sealed.secret == secret;
        if let Some((seal, sealed)) = inner.seals.iter_mut().find(|(_, sealed)| same(sealed)) {
            if layer < sealed.layer {
                *sealed = Arc::new(Sealed { layer, ..Sealed::clone(sealed) });
            }
            return seal.clone();
        }
        let seal = random_seal();
        inner.register(name, secret.clone());
        inner.seals.insert(seal.clone(), Arc::new(Sealed { name: name.to_owned(), secret, layer }));
        inner.index = None;
        seal
    }

    /// Does the same as `seal` for a captured secret. Returns `None` if the total size of captured
    /// secrets is too large.
    pub fn seal_captured(&self, name: &str, secret: Secret, layer: Layer) -> Option<String> {
        let mut inner = self.lock();
        if !inner.known.iter().any(|known| known.secret == secret) {
            inner.captured += secret.reveal().len().max(MIN_CAPTURED);
        }
        let room = Check::CaptureTotal.accepts(inner.captured <= MAX_CAPTURED);
        drop(inner);
        room.then(|| self.seal(name, secret, layer))
    }

    /// Registers a secret without a seal, for redaction and the tripwire.
    pub fn register(&self, name: &str, secret: Secret) {
        self.lock().register(name, secret);
    }

    /// Returns the secret of a seal.
    pub fn open(&self, seal: &str) -> Option<Arc<Sealed>> {
        self.lock().seals.get(seal).cloned()
    }

    /// Returns the seals that occur unchanged in the bytes, each once.
    pub fn seals_in(&self, bytes: &[u8]) -> Vec<String> {
        let index = self.index();
        let mut found: Vec<usize> = Vec::new();
        let _: ControlFlow<()> = index.seals.scan(bytes, &mut |needle, _| {
            if needle.form == PLAIN && !found.contains(&needle.owner) {
                found.push(needle.owner);
            }
            ControlFlow::Continue(())
        });
        found.into_iter().map(|owner| index.sealed[owner].0.clone()).collect()
    }

    /// Returns the name of a seal that occurs in a changed form, and how it was changed. This
    /// helps authors of guests and protects nothing: a changed seal that is not found is sent as
    /// it is, and has no value.
    pub fn transformed_seal_in(&self, bytes: &[u8]) -> Option<(String, &'static str)> {
        let index = self.index();
        let mut verbatim: HashMap<usize, usize> = HashMap::new();
        let found = views::visit_all(bytes, views::Track::No, &mut |view, encoding| {
            let mut plain: HashMap<usize, usize> = HashMap::new();
            index.seals.scan(&view.bytes, &mut |needle, span| {
                let (seal, name) = &index.sealed[needle.owner];
                match needle.form {
                    PLAIN => *plain.entry(needle.owner).or_default() += 1,
                    SPLIT if is_within(seal, &view.bytes, &span) => {}
                    form => return ControlFlow::Break((name.clone(), form)),
                }
                ControlFlow::Continue(())
            })?;
            if encoding == PLAIN {
                verbatim = plain;
                return ControlFlow::Continue(());
            }
            // A view also holds the unchanged seals: only additional ones were encoded.
            let new = plain.iter().find(|(owner, count)| verbatim.get(owner).is_none_or(|before| *count > before));
            new.map_or(ControlFlow::Continue(()), |(owner, _)| {
                ControlFlow::Break((index.sealed[*owner].1.clone(), encoding))
            })
        });
        found.break_value()
    }

    /// The tripwire: returns the name of a secret that occurs in some encoding. Ignores texts
    /// that differ from a secret in case, because they may be other words.
    pub fn leak_in(&self, bytes: &[u8]) -> Option<String> {
        let index = self.index();
        let found = views::visit_all(bytes, views::Track::No, &mut |view, _| {
            index.secrets.scan(&view.bytes, &mut |needle, _| {
                let known = &index.known[needle.owner];
                if needle.form == CASE || known.secret.reveal().trim().len() < MIN_TRIPWIRE {
                    return ControlFlow::Continue(());
                }
                ControlFlow::Break(known.name.clone())
            })
        });
        found.break_value()
    }

    /// Returns the text with `<redacted>` instead of secrets and `<sealed:name>` instead of
    /// seals, in any encoding. Does not escape anything else.
    pub fn redact(&self, text: &str) -> String {
        let index = self.index();
        let mut marks: Vec<(Range<usize>, Option<usize>)> = Vec::new();
        let _: ControlFlow<()> = views::visit_all(text.as_bytes(), views::Track::Yes, &mut |view, _| {
            let mut mark = |span, seal| {
                marks.push((view.origin(span), seal));
                ControlFlow::Continue(())
            };
            index.secrets.scan(&view.bytes, &mut |_, span| mark(span, None))?;
            let seals =
                Check::SealPrinted.perform(|| index.seals.scan(&view.bytes, &mut |n, span| mark(span, Some(n.owner))));
            seals.unwrap_or(ControlFlow::Continue(()))
        });
        marks.sort_by_key(|(span, _)| span.start);

        let mut redacted = String::with_capacity(text.len());
        let mut done = 0;
        let mut marks = marks.into_iter().peekable();
        while let Some((mut span, mut seal)) = marks.next() {
            while let Some((next, other)) = marks.next_if(|(next, _)| next.start < span.end) {
                span.end = span.end.max(next.end);
                seal = seal.filter(|_| other.is_some());
            }
            let (start, end) = (text.floor_char_boundary(span.start), text.ceil_char_boundary(span.end));
            redacted.push_str(&text[done.min(start)..start]);
            match seal {
                Some(owner) => redacted.push_str(&format!("<sealed:{}>", index.sealed[owner].1)),
                None => redacted.push_str("<redacted>"),
            }
            done = end;
        }
        redacted.push_str(&text[done..]);
        redacted
    }

    fn index(&self) -> Arc<Index> {
        let mut inner = self.lock();
        if let Some(index) = &inner.index {
            return Arc::clone(index);
        }
        let index = Arc::new(Index::new(&inner));
        inner.index = Some(Arc::clone(&index));
        index
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
    fn register(&mut self, name: &str, secret: Secret) {
        if self.known.iter().any(|known| known.secret == secret) {
            return;
        }
        let password = secret.password_in_url();
        self.known.push(Known { name: name.to_owned(), secret });
        self.index = None;
        if let Some(password) = password {
            self.register(&format!("{name}.password"), password);
        }
    }
}

impl Index {
    fn new(inner: &Inner) -> Self {
        let secrets = inner.known.iter().enumerate();
        let sealed: Vec<_> = inner.seals.iter().map(|(seal, sealed)| (seal.clone(), sealed.name.clone())).collect();
        Index {
            known: inner.known.clone(),
            secrets: Scanner::new(
                secrets.flat_map(|(owner, known)| needles::of_secret(owner, &known.secret)).collect(),
            ),
            seals: Scanner::new(
                sealed.iter().enumerate().flat_map(|(o, (seal, _))| needles::of_seal(o, seal)).collect(),
            ),
            sealed,
        }
    }
}

/// Returns true if the half of a seal at `span` is part of the complete seal.
fn is_within(seal: &str, bytes: &[u8], span: &Range<usize>) -> bool {
    bytes[span.start..].starts_with(seal.as_bytes()) || bytes[..span.end].ends_with(seal.as_bytes())
}

/// Returns a new seal.
///
/// # Panics
/// If the kernel returns no random bytes, because no seal would be safe then.
fn random_seal() -> String {
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
