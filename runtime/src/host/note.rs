//! Word of every host call, for the audit log and `wasm-cpi call`.
//!
//! A call that nobody waits for any more, since the guest was stopped, is told of
//! as well. Calls that reach nothing outside of the guest (log, clock, random,
//! config) are only counted.

use crate::bindings::bosh::cpi::{agent, image, registry};
use crate::host::State;
use crate::net::error::{HttpError, HttpErrorKind};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasm_cpi_policy::DenialReason;

/// What a guest asked for, what came of it, how long it took, and how many bytes it
/// gave or got.
#[derive(Clone, Debug)]
pub struct HostCall<'a> {
    /// Interface and function: `registry.get`.
    pub name: &'static str,
    /// The guest's word for what it is about; empty if it is about nothing.
    pub target: &'a str,
    pub ended: Ended,
    pub elapsed: Duration,
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Well,
    /// The policy refused it.
    Denied(DenialReason),
    /// Nothing was done: the word for it in the guest's error.
    Refused(Cow<'static, str>),
    /// It was tried: the same.
    Failed(Cow<'static, str>),
}

/// Sees host calls as they end.
pub type HostCallObserver = Arc<dyn Fn(&HostCall<'_>) + Send + Sync>;

/// Host calls that get no line of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub config: u64,
    pub log: u64,
    pub clock: u64,
    pub random: u64,
}

/// A host call that has begun: told of at the latest when this is dropped.
pub(super) struct Note {
    observer: Option<HostCallObserver>,
    name: &'static str,
    target: String,
    since: Instant,
}

impl State {
    pub(super) fn note(&self, name: &'static str, target: &str) -> Note {
        let observer = self.host.as_ref().and_then(|host| host.observer.clone());
        let target = if observer.is_some() { target.to_owned() } else { String::new() };
        Note { observer, name, target, since: Instant::now() }
    }
}

impl Note {
    /// Passes the answer on.
    pub(super) fn answered<T, E: Explained>(self, answer: Result<T, E>, bytes: impl Fn(&T) -> usize) -> Result<T, E> {
        match &answer {
            Ok(value) => self.done(bytes(value)),
            Err(error) => self.end(error.ended(), 0),
        }
        answer
    }

    /// For what cannot fail.
    pub(super) fn done(self, bytes: usize) {
        self.end(Ended::Well, bytes);
    }

    fn end(mut self, ended: Ended, bytes: usize) {
        if let Some(observer) = self.observer.take() {
            observer(&HostCall { name: self.name, target: &self.target, ended, elapsed: self.since.elapsed(), bytes });
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.take() {
            let (ended, elapsed) = (Ended::Failed(CANCELLED), self.since.elapsed());
            observer(&HostCall { name: self.name, target: &self.target, ended, elapsed, bytes: 0 });
        }
    }
}

const CANCELLED: Cow<'static, str> = Cow::Borrowed("cancelled");

/// An error of an interface, in one word.
pub(super) trait Explained {
    fn ended(&self) -> Ended;
}

fn refused(word: &'static str) -> Ended {
    Ended::Refused(word.into())
}

fn failed(word: &'static str) -> Ended {
    Ended::Failed(word.into())
}

impl Explained for agent::Error {
    fn ended(&self) -> Ended {
        match self {
            agent::Error::Refused(_) => refused("refused"),
            agent::Error::Registry(_) => failed("registry"),
            agent::Error::Cancelled(_) => Ended::Failed(CANCELLED),
        }
    }
}

impl Explained for registry::Error {
    fn ended(&self) -> Ended {
        match self {
            registry::Error::Denied(_) => refused("denied"),
            registry::Error::Invalid(_) => refused("invalid"),
            registry::Error::NotFound => failed("not-found"),
            registry::Error::Unavailable(_) => failed("unavailable"),
            registry::Error::Cancelled(_) => Ended::Failed(CANCELLED),
        }
    }
}

impl Explained for image::Error {
    fn ended(&self) -> Ended {
        match self {
            image::Error::Denied(_) => refused("denied"),
            image::Error::Invalid(_) => refused("invalid"),
            image::Error::Io(_) => failed("io"),
            image::Error::Cancelled(_) => Ended::Failed(CANCELLED),
        }
    }
}

impl Explained for HttpError {
    fn ended(&self) -> Ended {
        match self.kind {
            HttpErrorKind::Denied(reason) => Ended::Denied(reason),
            HttpErrorKind::InvalidRequest | HttpErrorKind::Limit(_) => Ended::Refused(self.kind.to_string().into()),
            _ => Ended::Failed(self.kind.to_string().into()),
        }
    }
}
