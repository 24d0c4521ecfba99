//! Prepares a guest: takes it from the cache, or compiles it now.

use crate::component::cache::{Cache, CacheEntry, CacheError, Miss};
use crate::component::child;
use crate::component::compile_lock::CompileLock;
use crate::component::description::Description;
use crate::component::source::{self, PinnedGuest};
use crate::failure::Failure;
use crate::hardening::Hardening;
use crate::limits::Limits;
use crate::log::Level;
use std::fmt;
use std::os::fd::AsRawFd;
use std::path::Path;
use wasm_cpi_checks::Check;
use wasmtime::Engine;
use wasmtime::component::Component;

/// A guest that is ready to be loaded.
pub struct Prepared<'a> {
    pub description: Description,
    preparation: Preparation<'a>,
    code: Code,
}

enum Code {
    Cached(Box<(Cache, CacheEntry)>),
    Fresh(Vec<u8>),
}

/// Whether a prepared guest is stored for later calls.
pub enum Stored {
    Already,
    Now,
    /// It cannot be stored, for example because the disk is full, so every call compiles it.
    Not(String),
    /// The new stamp of one of its files cannot be stored, so every call hashes that file.
    Unstamped(String),
}

impl Stored {
    fn unstamped(error: CacheError) -> Stored {
        Stored::Unstamped(error.to_string())
    }

    fn report(self, report: &dyn Fn(&CacheEvent)) {
        match self {
            Stored::Already | Stored::Now => {}
            Stored::Not(why) => report(&CacheEvent::NotKept(why)),
            Stored::Unstamped(why) => report(&CacheEvent::NotStamped(why)),
        }
    }
}

/// An event of the cache that is logged and audited.
pub enum CacheEvent {
    /// The directory cannot be used, so every call compiles the guest.
    Unusable(CacheError),
    /// A file in the cache is not trusted, or cannot be loaded.
    Doubted { what: String, check: Option<Check> },
    /// The guest is not prepared. Reported before compiling, which takes time and may fail.
    Compiling,
    /// The compiled guest cannot be stored.
    NotKept(String),
    /// The new stamp of a file cannot be stored.
    NotStamped(String),
}

impl CacheEvent {
    pub fn level(&self) -> Level {
        if matches!(self, CacheEvent::Compiling) { Level::Debug } else { Level::Warn }
    }

    /// Returns the name of the event in the audit log.
    pub fn name(&self) -> &'static str {
        match self {
            CacheEvent::Unusable(_) => "unusable",
            CacheEvent::Doubted { .. } => "doubted",
            CacheEvent::Compiling => "compiling",
            CacheEvent::NotKept(_) => "not-kept",
            CacheEvent::NotStamped(_) => "not-stamped",
        }
    }

    /// Returns the check that refused what lies in the cache, if one did.
    pub fn check(&self) -> Option<Check> {
        match self {
            CacheEvent::Unusable(error) => error.check(),
            CacheEvent::Doubted { check, .. } => *check,
            CacheEvent::Compiling | CacheEvent::NotKept(_) | CacheEvent::NotStamped(_) => None,
        }
    }
}

impl From<&CacheError> for CacheEvent {
    fn from(error: &CacheError) -> CacheEvent {
        CacheEvent::Doubted { what: error.to_string(), check: error.check() }
    }
}

impl fmt::Display for CacheEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheEvent::Unusable(what) => write!(f, "{what}; the cache is not used"),
            CacheEvent::Doubted { what, .. } => write!(f, "{what}; the guest is prepared again"),
            CacheEvent::Compiling => f.write_str("the guest is not prepared; it is compiled now"),
            CacheEvent::NotKept(why) => {
                write!(f, "the prepared guest cannot be stored, so every call compiles it again: {why}")
            }
            CacheEvent::NotStamped(why) => {
                write!(f, "the new stamp of a file of the guest cannot be stored, so every call hashes it again: {why}")
            }
        }
    }
}

/// Which guest to prepare, and where to store the result.
#[derive(Clone, Copy)]
pub struct Preparation<'a> {
    pub guest: &'a PinnedGuest,
    pub cache: &'a Path,
    pub limits: &'a Limits,
    /// The lock-down of the compiling child.
    pub hardening: Hardening,
}

/// Returns the prepared guest; prepares it now if it is not in the cache. Reports if it cannot be stored.
pub fn find_or_prepare<'a>(
    preparation: Preparation<'a>,
    report: &dyn Fn(&CacheEvent),
) -> Result<Prepared<'a>, Failure> {
    let (prepared, stored) = prepare(preparation, report)?;
    stored.report(report);
    Ok(prepared)
}

/// Like `find_or_prepare`, but returns whether the guest is stored.
pub fn prepare<'a>(
    preparation: Preparation<'a>,
    report: &dyn Fn(&CacheEvent),
) -> Result<(Prepared<'a>, Stored), Failure> {
    let guest = preparation.guest;
    // Signatures are verified first, because an unsigned guest must be neither compiled nor looked up.
    if let Some(signature) = &guest.signature {
        signature.verify(&guest.path, &guest.sha256)?;
    }
    let cache = match Cache::open(preparation.cache) {
        Ok(cache) => Some(cache),
        Err(error) => {
            let made = if error.is_absent() { Cache::create(preparation.cache) } else { Err(error) };
            made.map_err(|error| report(&CacheEvent::Unusable(error))).ok()
        }
    };
    let Some(cache) = cache else { return compile(preparation, None, report) };
    if let Some((entry, stored)) = find(preparation, &cache, report)? {
        return Ok((Prepared::cached(preparation, cache, entry), stored));
    }
    let lock = CompileLock::acquire(cache.directory(), &guest.sha256, preparation.limits.compile_seconds);
    // The process that had the lock before has prepared the guest, unless it failed.
    let found = if lock.is_some() { find(preparation, &cache, &|_| {})? } else { None };
    let Some((entry, stored)) = found else { return compile(preparation, Some(&cache), report) };
    drop(lock);
    Ok((Prepared::cached(preparation, cache, entry), stored))
}

/// Returns the entry in the cache, and whether its stamp is stored; `None` if the guest must be
/// compiled.
fn find(
    preparation: Preparation<'_>,
    cache: &Cache,
    report: &dyn Fn(&CacheEvent),
) -> Result<Option<(CacheEntry, Stored)>, Failure> {
    let guest = preparation.guest;
    match cache.lookup(&guest.sha256) {
        Ok(entry) if Check::CacheStamp.accepts(entry.is_of(&guest.path)) => Ok(Some((entry, Stored::Already))),
        // The stamp of the file has changed, so the file is hashed again. It need not be compiled.
        Ok(mut entry) => {
            let source = source::read_pinned(guest, preparation.limits)?;
            let restamped = cache.restamp(&guest.sha256, &source.stamp, &mut entry);
            Ok(Some((entry, restamped.map_or_else(Stored::unstamped, |()| Stored::Already))))
        }
        Err(Miss::Absent) => Ok(None),
        Err(Miss::Doubt(error)) => {
            report(&CacheEvent::from(&error));
            Ok(None)
        }
    }
}

/// Compiles and stores the guest, without looking into the cache.
fn compile<'a>(
    preparation: Preparation<'a>,
    cache: Option<&Cache>,
    report: &dyn Fn(&CacheEvent),
) -> Result<(Prepared<'a>, Stored), Failure> {
    report(&CacheEvent::Compiling);
    let source = source::read_pinned(preparation.guest, preparation.limits)?;
    let compiled = child::compile(source.bytes, preparation.limits, preparation.hardening).map_err(|failure| {
        Failure { message: format!("{}: {}", preparation.guest.path.display(), failure.message), ..failure }
    })?;
    let stored = match cache {
        None => Stored::Not(format!("{} cannot be used", preparation.cache.display())),
        Some(cache) => match cache.store(&source.sha256, &source.stamp, &compiled.description, &compiled.artifact) {
            Ok(()) => Stored::Now,
            Err(error) => Stored::Not(error.to_string()),
        },
    };
    Ok((Prepared { description: compiled.description, preparation, code: Code::Fresh(compiled.artifact) }, stored))
}

impl<'a> Prepared<'a> {
    fn cached(preparation: Preparation<'a>, cache: Cache, entry: CacheEntry) -> Prepared<'a> {
        let description = entry.description.clone();
        Prepared { description, preparation, code: Code::Cached(Box::new((cache, entry))) }
    }

    /// Maps the code. If the cached artifact cannot be loaded, the guest is compiled again.
    pub fn component(mut self, engine: &Engine, report: &dyn Fn(&CacheEvent)) -> Result<Component, Failure> {
        let (cache, entry) = match &mut self.code {
            Code::Fresh(bytes) => return deserialize(engine, bytes),
            Code::Cached(cached) => (&cached.0, &mut cached.1),
        };
        let guest = self.preparation.guest;
        let doubted = match map(engine, cache, entry, guest, report) {
            Ok(component) => return Ok(component),
            Err(doubted) => doubted,
        };
        report(&doubted);
        let lock = CompileLock::acquire(cache.directory(), &guest.sha256, self.preparation.limits.compile_seconds);
        // Another process may have prepared the guest again meanwhile.
        if lock.is_some()
            && let Ok(mut newer) = cache.lookup(&guest.sha256)
            && !newer.is_as_old_as(entry)
            && let Ok(component) = map(engine, cache, &mut newer, guest, report)
        {
            return Ok(component);
        }
        let (compiled, stored) = compile(self.preparation, Some(cache), report)?;
        stored.report(report);
        match &compiled.code {
            Code::Fresh(bytes) => deserialize(engine, bytes),
            Code::Cached(..) => Err(Failure::runtime(
                "a compiled guest came from the cache; this is a bug in wasm-cpi, please report it",
            )),
        }
    }
}

/// Maps the artifact of an entry, or returns why it cannot be used.
fn map(
    engine: &Engine,
    cache: &Cache,
    entry: &mut CacheEntry,
    guest: &PinnedGuest,
    report: &dyn Fn(&CacheEvent),
) -> Result<Component, CacheEvent> {
    let doubt = |what: String| CacheEvent::Doubted { what, check: None };
    let (file, stamp) = cache.artifact(entry).map_err(|miss| match miss {
        Miss::Absent => doubt("the artifact is missing from the cache".into()),
        Miss::Doubt(error) => CacheEvent::from(&error),
    })?;
    if let Some(stamp) = stamp {
        let restamped = cache.restamp_artifact(&guest.sha256, entry, stamp);
        restamped.map_or_else(Stored::unstamped, |()| Stored::Already).report(report);
    }
    // The path of the open descriptor, so that the file that was checked is mapped.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: `Cache::artifact` checked that no one except this user or root can have written the
    // file, and that it has not changed since its content was hashed.
    #[allow(unsafe_code)]
    unsafe { Component::deserialize_file(engine, path) }
        .map_err(|error| doubt(format!("the prepared guest was made by another runtime ({error})")))
}

/// Loads an artifact that the compiling child made during this call.
fn deserialize(engine: &Engine, bytes: &[u8]) -> Result<Component, Failure> {
    // SAFETY: the bytes came through a pipe from a child that compiled them before
    // any code of the guest ran.
    #[allow(unsafe_code)]
    unsafe { Component::deserialize(engine, bytes) }.map_err(|error| {
        Failure::runtime(format!(
            "wasm-cpi and wasm-cpi-run are of different releases ({error}); install both from one release"
        ))
    })
}
