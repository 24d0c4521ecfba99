//! Prepares a guest: takes it from the cache, or compiles it now.

use crate::component::cache::{Cache, CacheEntry, CacheError, CacheEvent, Miss, StampedFile};
use crate::component::child::{Compiled, compile_in_child};
use crate::component::compile_lock::CompileLock;
use crate::component::description::GuestDescription;
use crate::component::source::{self, PinnedGuest};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::lock_down::LockDownLevel;
use std::os::fd::AsRawFd;
use std::path::Path;
use wasm_cpi_checks::Check;
use wasmtime::Engine;
use wasmtime::component::Component;

/// A guest that is ready to be loaded.
pub struct Prepared<'a> {
    pub description: GuestDescription,
    pub stored: Stored,
    preparation: Preparation<'a>,
    code: Code,
}

enum Code {
    Cached(Box<(Cache, CacheEntry)>),
    Fresh(Vec<u8>),
}

/// Says whether a prepared guest is stored for later calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    Already,
    Now,
    /// It cannot be stored, for example because the disk is full, so every call compiles it.
    Not,
    /// The new stamp of the guest's file cannot be stored, so every call hashes that file.
    Unstamped,
}

/// Which guest to prepare, and where to store the result.
#[derive(Clone, Copy)]
pub struct Preparation<'a> {
    pub guest: &'a PinnedGuest,
    pub cache: &'a Path,
    pub limits: &'a Limits,
    /// The lock-down of the compiling child.
    pub hardening: LockDownLevel,
}

/// Returns the prepared guest. Compiles it now if it is not in the cache. Reports what happens to the
/// cache.
pub fn prepare<'a>(preparation: Preparation<'a>, report: &dyn Fn(&CacheEvent)) -> Result<Prepared<'a>, Failure> {
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
    let Some(cache) = cache else {
        let (compiled, stored) = compile(preparation, None, report)?;
        return Ok(Prepared::fresh(preparation, compiled, stored));
    };
    if let Some((entry, stored)) = find(preparation, &cache, report)? {
        return Ok(Prepared::cached(preparation, cache, entry, stored));
    }
    let lock = CompileLock::acquire(cache.directory(), &guest.sha256, preparation.limits.compile_seconds);
    // If another process had the lock before, it has prepared the guest meanwhile, unless it failed. Doubts
    // about what is in the cache were reported above.
    let report_again = |event: &CacheEvent| {
        if matches!(event, CacheEvent::NotStamped { .. }) {
            report(event);
        }
    };
    let found = if lock.is_some() { find(preparation, &cache, &report_again)? } else { None };
    let Some((entry, stored)) = found else {
        let (compiled, stored) = compile(preparation, Some(&cache), report)?;
        return Ok(Prepared::fresh(preparation, compiled, stored));
    };
    drop(lock);
    Ok(Prepared::cached(preparation, cache, entry, stored))
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
        Ok(entry) if Check::CacheStamp.accepts(entry.matches_file(&guest.path)) => Ok(Some((entry, Stored::Already))),
        // The stamp of the file has changed, so the file is hashed again. It need not be compiled.
        Ok(mut entry) => {
            let file = source::read_pinned(guest, preparation.limits)?;
            let stored = match cache.restamp_guest(&guest.sha256, &file.stamp, &mut entry) {
                Ok(()) => Stored::Already,
                Err(error) => {
                    report(&not_stamped(StampedFile::Guest, &error));
                    Stored::Unstamped
                }
            };
            Ok(Some((entry, stored)))
        }
        Err(Miss::Absent) => Ok(None),
        Err(Miss::Rejected(error)) => {
            report(&CacheEvent::from(&error));
            Ok(None)
        }
    }
}

/// Compiles and stores the guest, without looking into the cache.
fn compile(
    preparation: Preparation<'_>,
    cache: Option<&Cache>,
    report: &dyn Fn(&CacheEvent),
) -> Result<(Compiled, Stored), Failure> {
    report(&CacheEvent::Compiling);
    let file = source::read_pinned(preparation.guest, preparation.limits)?;
    let compiled = compile_in_child(file.bytes, preparation.limits, preparation.hardening).map_err(|failure| {
        Failure { message: format!("{}: {}", preparation.guest.path.display(), failure.message), ..failure }
    })?;
    let stored = match cache {
        None => Err(format!("{} cannot be used", preparation.cache.display())),
        Some(cache) => cache
            .store(&file.sha256, &file.stamp, &compiled.description, &compiled.artifact)
            .map_err(|error| error.to_string()),
    };
    match stored {
        Ok(()) => Ok((compiled, Stored::Now)),
        Err(why) => {
            report(&CacheEvent::NotKept(why));
            Ok((compiled, Stored::Not))
        }
    }
}

fn not_stamped(file: StampedFile, error: &CacheError) -> CacheEvent {
    CacheEvent::NotStamped { file, why: error.to_string() }
}

impl<'a> Prepared<'a> {
    fn fresh(preparation: Preparation<'a>, compiled: Compiled, stored: Stored) -> Prepared<'a> {
        Prepared { description: compiled.description, stored, preparation, code: Code::Fresh(compiled.artifact) }
    }

    fn cached(preparation: Preparation<'a>, cache: Cache, entry: CacheEntry, stored: Stored) -> Prepared<'a> {
        let description = entry.description.clone();
        Prepared { description, stored, preparation, code: Code::Cached(Box::new((cache, entry))) }
    }

    /// Maps the artifact of the cache, or loads the one that was just compiled. If the cached artifact
    /// cannot be loaded, compiles the guest again and stores it.
    pub fn load(mut self, engine: &Engine, report: &dyn Fn(&CacheEvent)) -> Result<Component, Failure> {
        let (cache, entry) = match &mut self.code {
            Code::Fresh(bytes) => return deserialize(engine, bytes),
            Code::Cached(cached) => (&cached.0, &mut cached.1),
        };
        let guest = self.preparation.guest;
        match map(engine, cache, entry, guest, report) {
            Ok(component) => return Ok(component),
            Err(rejected) => report(&rejected),
        }
        let lock = CompileLock::acquire(cache.directory(), &guest.sha256, self.preparation.limits.compile_seconds);
        // Another process may have prepared the guest again meanwhile.
        if lock.is_some()
            && let Ok(mut newer) = cache.lookup(&guest.sha256)
            && !newer.has_same_time_as(entry)
            && let Ok(component) = map(engine, cache, &mut newer, guest, report)
        {
            return Ok(component);
        }
        let (compiled, _) = compile(self.preparation, Some(cache), report)?;
        deserialize(engine, &compiled.artifact)
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
    let rejected = |what: String| CacheEvent::Doubted { what, check: None };
    let (file, stamp) = cache.artifact(entry).map_err(|miss| match miss {
        Miss::Absent => rejected("the artifact of the prepared guest is missing from the cache".into()),
        Miss::Rejected(error) => CacheEvent::from(&error),
    })?;
    if let Some(stamp) = stamp
        && let Err(error) = cache.restamp_artifact(&guest.sha256, entry, stamp)
    {
        report(&not_stamped(StampedFile::Artifact, &error));
    }
    // This path names the open descriptor, so that exactly the file that was checked is mapped.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: `Cache::artifact` checked that no one except this user or root can have written the
    // file, and that it has not changed since its content was hashed.
    #[allow(unsafe_code)]
    unsafe { Component::deserialize_file(engine, path) }.map_err(|error| {
        rejected(format!("the prepared guest was compiled by another version or with other settings ({error})"))
    })
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
