//! A guest that is ready to run, from the cache or made ready now.

use crate::component::cache::{Cache, CacheEntry, CacheError, Miss};
use crate::component::child;
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

pub struct Prepared<'a> {
    pub description: Description,
    preparation: Preparation<'a>,
    code: Code,
}

enum Code {
    Cached(Box<(Cache, CacheEntry)>),
    Fresh(Vec<u8>),
}

/// Whether a preparation was stored for later calls.
pub enum Stored {
    Already,
    Now,
    /// The disk is full, read-only, or not ours: it only costs speed.
    Not(String),
    /// The same for a guest whose file was touched: it is hashed in every call.
    Unstamped(String),
}

impl Stored {
    fn unstamped(error: CacheError) -> Stored {
        Stored::Unstamped(error.to_string())
    }

    fn report(self, tell: &dyn Fn(&CacheEvent)) {
        match self {
            Stored::Already | Stored::Now => {}
            Stored::Not(why) => tell(&CacheEvent::NotKept(why)),
            Stored::Unstamped(why) => tell(&CacheEvent::NotStamped(why)),
        }
    }
}

/// What is worth telling about the cache.
pub enum CacheEvent {
    /// The directory cannot be used: every call compiles.
    Unusable(String),
    /// Something lies there that is not trusted, or cannot be loaded.
    Doubted(String),
    /// Nothing that can be used lies there. Told before, as it takes a while and may fail.
    Compiling,
    /// What was compiled cannot be kept.
    NotKept(String),
    /// The guest's file was touched, and that cannot be kept.
    NotStamped(String),
}

impl CacheEvent {
    pub fn level(&self) -> Level {
        if matches!(self, CacheEvent::Compiling) { Level::Debug } else { Level::Warn }
    }

    /// For the audit log.
    pub fn word(&self) -> &'static str {
        match self {
            CacheEvent::Unusable(_) => "unusable",
            CacheEvent::Doubted(_) => "doubted",
            CacheEvent::Compiling => "compiling",
            CacheEvent::NotKept(_) => "not-kept",
            CacheEvent::NotStamped(_) => "not-stamped",
        }
    }
}

impl fmt::Display for CacheEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheEvent::Unusable(what) => write!(f, "{what}; it is not used"),
            CacheEvent::Doubted(what) => write!(f, "{what}; the guest is prepared anew"),
            CacheEvent::Compiling => f.write_str("the guest is not prepared: compiling it"),
            CacheEvent::NotKept(why) => {
                write!(f, "the prepared guest cannot be kept, every call compiles it again: {why}")
            }
            CacheEvent::NotStamped(why) => {
                write!(f, "a file of the guest was touched, every call hashes it again: {why}")
            }
        }
    }
}

/// Which guest to prepare, and where its prepared form is kept.
#[derive(Clone, Copy)]
pub struct Preparation<'a> {
    pub guest: &'a PinnedGuest,
    pub cache: &'a Path,
    pub limits: &'a Limits,
    /// Of the compiling child.
    pub hardening: Hardening,
}

/// The guest, prepared now if it was not.
pub fn prepared<'a>(preparation: Preparation<'a>, tell: &dyn Fn(&CacheEvent)) -> Result<Prepared<'a>, Failure> {
    let (prepared, stored) = prepare(preparation, tell)?;
    stored.report(tell);
    Ok(prepared)
}

/// Tells of doubts, and of what takes a while.
pub fn prepare<'a>(
    preparation: Preparation<'a>,
    tell: &dyn Fn(&CacheEvent),
) -> Result<(Prepared<'a>, Stored), Failure> {
    let guest = preparation.guest;
    // First of all: what is not vouched for is neither compiled nor looked up.
    if let Some(signature) = &guest.signature {
        signature.verify(&guest.path, &guest.sha256)?;
    }
    let cache = match Cache::open(preparation.cache) {
        Ok(cache) => Some(cache),
        Err(error) => {
            let made = if error.is_absent() { Cache::create(preparation.cache) } else { Err(error) };
            made.map_err(|error| tell(&CacheEvent::Unusable(error.to_string()))).ok()
        }
    };
    if let Some(cache) = cache {
        match cache.lookup(&guest.sha256) {
            Ok(entry) if entry.is_of(&guest.path) || !Check::CacheStamp.on() => {
                let description = entry.description.clone();
                let code = Code::Cached(Box::new((cache, entry)));
                return Ok((Prepared { description, preparation, code }, Stored::Already));
            }
            // The file was touched: it has to be hashed again, not compiled.
            Ok(mut entry) => {
                let source = source::read_pinned(guest, preparation.limits)?;
                let restamped = cache.restamp(&guest.sha256, &source.stamp, &mut entry);
                let stored = restamped.map_or_else(Stored::unstamped, |()| Stored::Already);
                let description = entry.description.clone();
                let code = Code::Cached(Box::new((cache, entry)));
                return Ok((Prepared { description, preparation, code }, stored));
            }
            Err(Miss::Absent) => {}
            Err(Miss::Doubt(error)) => tell(&CacheEvent::Doubted(error.to_string())),
        }
        return compile(preparation, Some(&cache), tell);
    }
    compile(preparation, None, tell)
}

/// Compiles and stores, whatever the cache holds.
fn compile<'a>(
    preparation: Preparation<'a>,
    cache: Option<&Cache>,
    tell: &dyn Fn(&CacheEvent),
) -> Result<(Prepared<'a>, Stored), Failure> {
    tell(&CacheEvent::Compiling);
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

impl Prepared<'_> {
    /// The code, mapped. A cached artifact that cannot be loaded is made anew.
    pub fn component(mut self, engine: &Engine, tell: &dyn Fn(&CacheEvent)) -> Result<Component, Failure> {
        let (cache, entry) = match &mut self.code {
            Code::Fresh(bytes) => return deserialize(engine, bytes),
            Code::Cached(cached) => (&cached.0, &mut cached.1),
        };
        let what = match cache.artifact(entry) {
            Ok((file, stamp)) => {
                if let Some(stamp) = stamp {
                    let restamped = cache.restamp_artifact(&self.preparation.guest.sha256, entry, stamp);
                    restamped.map_or_else(Stored::unstamped, |()| Stored::Already).report(tell);
                }
                // By descriptor: what is mapped is what was checked.
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                // SAFETY: `Cache::artifact` checked that nobody but this user or
                // root can have written the file, and that it is as it was when
                // its content was hashed.
                #[allow(unsafe_code)]
                match unsafe { Component::deserialize_file(engine, path) } {
                    Ok(component) => return Ok(component),
                    Err(error) => format!("the prepared guest was made by another runtime ({error})"),
                }
            }
            Err(Miss::Absent) => "the artifact is gone from the cache".into(),
            Err(Miss::Doubt(error)) => error.to_string(),
        };
        tell(&CacheEvent::Doubted(what));
        let (anew, stored) = compile(self.preparation, Some(cache), tell)?;
        stored.report(tell);
        match &anew.code {
            Code::Fresh(bytes) => deserialize(engine, bytes),
            Code::Cached(..) => Err(Failure::runtime("a new preparation cannot come from the cache")),
        }
    }
}

/// An artifact that our own child compiled during this call.
fn deserialize(engine: &Engine, bytes: &[u8]) -> Result<Component, Failure> {
    // SAFETY: the bytes came through a pipe from a child that compiled them before
    // any code of the guest ran.
    #[allow(unsafe_code)]
    unsafe { Component::deserialize(engine, bytes) }.map_err(|error| {
        Failure::runtime(format!(
            "wasm-cpi and wasm-cpi-run do not fit together: {error}; install both from one release"
        ))
    })
}
