//! Every secret of a call, and the seals that stand for them in the guest.
//!
//! A seal is 40 random alphanumerics, made for this call and worth nothing
//! outside of it: only slots (`net::slots`) turn one back into its secret. The
//! vault also knows which bytes must not be seen: `leak_in` is the tripwire on
//! responses, `redact` cleans whatever is logged or answered. It hands out a
//! secret through `open` alone, and shows none.

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

/// Shorter secrets are not redacted: they would shred every text.
const MIN_REDACTED: usize = 6;
/// Shorter secrets do not trip the wire: they occur by chance.
const MIN_TRIPWIRE: usize = 12;
/// What a call may learn from others. Each secret costs memory, and the time to
/// build the search anew, as if it were at least as long as `LEAST`.
const MAX_LEARNED: usize = 1024 * 1024;
const LEAST: usize = 4 * 1024;
const SEAL_LENGTH: usize = 40;

#[derive(Default)]
pub struct Vault {
    inner: Mutex<Inner>,
}

/// What a seal stands for.
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
    learned: usize,
    /// Built on first use, dropped when something is added.
    index: Option<Arc<Index>>,
}

#[derive(Clone)]
struct Known {
    name: String,
    secret: Secret,
}

/// Searches for everything that is known, at once.
struct Index {
    /// Owners of the needles in `secrets`.
    known: Vec<Known>,
    secrets: Scanner,
    /// Owners of the needles in `seals`: the seal, and its name.
    sealed: Vec<(String, String)>,
    seals: Scanner,
}

impl Vault {
    pub fn new() -> Self {
        Vault::default()
    }

    /// Registers a secret and returns its seal, the same for the same name and
    /// value. A secret sealed for two layers keeps the one that travels less.
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
        inner.keep(name, secret.clone());
        inner.seals.insert(seal.clone(), Arc::new(Sealed { name: name.to_owned(), secret, layer }));
        inner.index = None;
        seal
    }

    /// The same for a secret that a peer made up. `None` when there is no more room.
    pub fn learn(&self, name: &str, secret: Secret, layer: Layer) -> Option<String> {
        let mut inner = self.lock();
        if !inner.known.iter().any(|known| known.secret == secret) {
            inner.learned += secret.reveal().len().max(LEAST);
        }
        let room = inner.learned <= MAX_LEARNED || !Check::CaptureTotal.on();
        drop(inner);
        room.then(|| self.seal(name, secret, layer))
    }

    /// Registers a secret that has no seal: redaction and tripwire know it.
    pub fn keep(&self, name: &str, secret: Secret) {
        self.lock().keep(name, secret);
    }

    pub fn open(&self, seal: &str) -> Option<Arc<Sealed>> {
        self.lock().seals.get(seal).cloned()
    }

    /// The seals that occur as they are, each once.
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

    /// The name of a seal that occurs in other than its own characters, and
    /// what was done to it. A help for guests, no wall: a seal that is hidden
    /// better than that stays as worthless as it is.
    pub fn transformed_seal_in(&self, bytes: &[u8]) -> Option<(String, &'static str)> {
        let index = self.index();
        let mut verbatim: HashMap<usize, usize> = HashMap::new();
        let found = views::each(bytes, views::Track::No, &mut |view, encoding| {
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
            // A view keeps what was verbatim before: only what is new was encoded.
            let new = plain.iter().find(|(owner, count)| verbatim.get(owner).is_none_or(|before| *count > before));
            new.map_or(ControlFlow::Continue(()), |(owner, _)| {
                ControlFlow::Break((index.sealed[*owner].1.clone(), encoding))
            })
        });
        found.break_value()
    }

    /// The tripwire: the name of a secret that occurs in some encoding. What is the
    /// same but for its case may be another word.
    pub fn leak_in(&self, bytes: &[u8]) -> Option<String> {
        let index = self.index();
        let found = views::each(bytes, views::Track::No, &mut |view, _| {
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

    /// The text with `<redacted>` for secrets and `<sealed:name>` for seals,
    /// however they are encoded. Nothing else is escaped here.
    pub fn redact(&self, text: &str) -> String {
        let index = self.index();
        let mut marks: Vec<(Range<usize>, Option<usize>)> = Vec::new();
        let _: ControlFlow<()> = views::each(text.as_bytes(), views::Track::Yes, &mut |view, _| {
            let mut mark = |span, seal| {
                marks.push((view.origin(span), seal));
                ControlFlow::Continue(())
            };
            index.secrets.scan(&view.bytes, &mut |_, span| mark(span, None))?;
            if !Check::SealPrinted.on() {
                return ControlFlow::Continue(());
            }
            index.seals.scan(&view.bytes, &mut |needle, span| mark(span, Some(needle.owner)))
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
        // Every change is complete before the lock is let go of.
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
    fn keep(&mut self, name: &str, secret: Secret) {
        if self.known.iter().any(|known| known.secret == secret) {
            return;
        }
        let password = secret.password_in_url();
        self.known.push(Known { name: name.to_owned(), secret });
        self.index = None;
        if let Some(password) = password {
            self.keep(&format!("{name}.password"), password);
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

/// Whether a half at `span` is a half of the complete seal.
fn is_within(seal: &str, bytes: &[u8], span: &Range<usize>) -> bool {
    bytes[span.start..].starts_with(seal.as_bytes()) || bytes[..span.end].ends_with(seal.as_bytes())
}

/// # Panics
/// If the kernel has no randomness: there is no safe seal to go on with.
fn random_seal() -> String {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut seal = String::with_capacity(SEAL_LENGTH);
    while seal.len() < SEAL_LENGTH {
        let mut bytes = [0; SEAL_LENGTH];
        getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
        // Six bits each; those without a letter are thrown away, so that all letters are equally likely.
        let letters = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(byte & 63)));
        seal.extend(letters.map(|letter| char::from(*letter)).take(SEAL_LENGTH - seal.len()));
    }
    seal
}
