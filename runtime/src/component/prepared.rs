//! A guest that is ready to run, from the cache or made ready now.

use crate::component::cache::{Cache, Description, Entry, Miss};
use crate::component::child;
use crate::component::source::{self, Stamp};
use crate::config::GuestConfig;
use crate::failure::Failure;
use crate::hardening::Level as Hardening;
use crate::limits::Limits;
use crate::log::{Level, Log};
use std::os::fd::AsRawFd;
use std::path::Path;
use wasmtime::Engine;
use wasmtime::component::Component;

pub struct Prepared {
    pub description: Description,
    code: Code,
}

enum Code {
    Cached(Box<(Cache, Entry)>),
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

/// Which guest, and where its prepared form is kept.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub guest: &'a GuestConfig,
    pub cache: &'a Path,
    pub limits: &'a Limits,
    /// Of the compiling child.
    pub hardening: Hardening,
}

/// The guest, prepared now if it was not.
pub fn prepared(wanted: Wanted<'_>, log: &Log) -> Result<Prepared, Failure> {
    let (prepared, stored) = prepare(wanted, |level, message| log.write(level, message))?;
    match stored {
        Stored::Already | Stored::Now => {}
        Stored::Not(why) => {
            log.write(Level::Warn, &format!("the prepared guest cannot be kept, every call compiles it again: {why}"));
        }
        Stored::Unstamped(why) => {
            log.write(Level::Warn, &format!("the guest's file was touched, every call hashes it again: {why}"));
        }
    }
    Ok(prepared)
}

/// Tells of doubts, and of what takes a while.
pub fn prepare(wanted: Wanted<'_>, tell: impl Fn(Level, &str)) -> Result<(Prepared, Stored), Failure> {
    let guest = wanted.guest;
    let cache = match Cache::open(wanted.cache) {
        Ok(cache) => Some(cache),
        Err(what) => {
            let made = if wanted.cache.exists() { Err(what) } else { Cache::create(wanted.cache) };
            made.inspect_err(|what| tell(Level::Warn, &format!("{what}; it is not used"))).ok()
        }
    };
    if let Some(cache) = cache {
        match cache.lookup(&guest.sha256) {
            Ok(entry) if Stamp::of(&guest.path).as_ref() == Some(&entry.stamp) => {
                let description = entry.description.clone();
                return Ok((Prepared { description, code: Code::Cached(Box::new((cache, entry))) }, Stored::Already));
            }
            // The file was touched: it has to be hashed again, not compiled.
            Ok(entry) => {
                let source = source::read_pinned(guest, wanted.limits)?;
                let restamped = cache.restamp(&guest.sha256, &source.stamp, &entry);
                let stored = restamped.map_or_else(Stored::Unstamped, |()| Stored::Already);
                let description = entry.description.clone();
                return Ok((Prepared { description, code: Code::Cached(Box::new((cache, entry))) }, stored));
            }
            Err(Miss::Absent) => {}
            Err(Miss::Doubt(what)) => tell(Level::Warn, &format!("{what}; the guest is prepared anew")),
        }
        tell(Level::Debug, COMPILING);
        return compile(wanted, Some(&cache));
    }
    tell(Level::Debug, COMPILING);
    compile(wanted, None)
}

const COMPILING: &str = "the guest is not prepared: compiling it";

/// Compiles and stores, whatever the cache holds.
fn compile(wanted: Wanted<'_>, cache: Option<&Cache>) -> Result<(Prepared, Stored), Failure> {
    let source = source::read_pinned(wanted.guest, wanted.limits)?;
    let compiled = child::compile(source.bytes, wanted.limits, wanted.hardening).map_err(|failure| Failure {
        message: format!("{}: {}", wanted.guest.path.display(), failure.message),
        ..failure
    })?;
    let stored = match cache {
        None => Stored::Not(format!("{} cannot be used", wanted.cache.display())),
        Some(cache) => match cache.store(&source.sha256, &source.stamp, &compiled.description, &compiled.artifact) {
            Ok(()) => Stored::Now,
            Err(what) => Stored::Not(what),
        },
    };
    Ok((Prepared { description: compiled.description, code: Code::Fresh(compiled.artifact) }, stored))
}

impl Prepared {
    /// The code, mapped. A cached artifact that cannot be loaded is made anew.
    pub fn component(self, engine: &Engine, wanted: Wanted<'_>, log: &Log) -> Result<Component, Failure> {
        let (cache, entry) = match &self.code {
            Code::Fresh(bytes) => return deserialize(engine, bytes),
            Code::Cached(cached) => (&cached.0, &cached.1),
        };
        let what = match cache.artifact(entry) {
            Ok(file) => {
                // By descriptor: what is mapped is what was checked.
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                // SAFETY: `Cache::artifact` checked that nobody but this user or
                // root can have written the file, and that it is undamaged.
                #[allow(unsafe_code)]
                match unsafe { Component::deserialize_file(engine, path) } {
                    Ok(component) => return Ok(component),
                    Err(error) => format!("the prepared guest was made by another runtime ({error})"),
                }
            }
            Err(Miss::Absent) => "the artifact is gone from the cache".into(),
            Err(Miss::Doubt(what)) => what,
        };
        log.write(Level::Warn, &format!("{what}; the guest is prepared anew"));
        let (anew, _) = compile(wanted, Some(cache))?;
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
