//! How a call ends before its guest does.
//!
//! Two stages. When a deadline passes or a signal arrives, the guest is asked
//! first: waiting host calls answer that the call is ending, and the guest has
//! `cleanup_seconds` to undo what it began. Only then is it stopped. A hard kill
//! in the middle of `create_vm` is how VMs leak.

use crate::failure::{Failure, Who};
use crate::limits::Limits;
use crate::rpc::method::Method;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Why a call ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Limit {
        name: &'static str,
        value: u64,
    },
    Signal(&'static str),
    /// The guest did something after which it may not go on.
    Abort(Failure),
}

impl Why {
    /// For the guest: short.
    pub fn word(&self) -> String {
        match self {
            Why::Limit { name, .. } => format!("the limit {name} is reached"),
            Why::Signal(name) => format!("{name} received"),
            Why::Abort(failure) => failure.to_string(),
        }
    }

    pub fn failure(&self) -> Failure {
        match self {
            Why::Limit { name, value } => Failure::limit(name, value, "the call"),
            Why::Signal(name) => Failure::new(Who::Runtime, format!("{name} ended the call")),
            Why::Abort(failure) => failure.clone(),
        }
    }
}

/// The time for cleaning up is over: the error that stops the guest.
#[derive(Debug, thiserror::Error)]
#[error("the call is over")]
pub struct Over;

pub struct Ending {
    wall: (&'static str, u64),
    started: Instant,
    wall_deadline: Instant,
    cleanup: Duration,
    begun: Mutex<Option<(Why, Instant)>>,
    changed: Notify,
}

impl Ending {
    /// Starts the clock of a call.
    pub fn new(limits: &Limits, method: Method) -> Ending {
        let wall = match method {
            Method::CreateStemcell => ("create_stemcell_wall_seconds", limits.create_stemcell_wall_seconds),
            _ => ("wall_seconds", limits.wall_seconds),
        };
        let started = Instant::now();
        Ending {
            wall,
            started,
            wall_deadline: started + Duration::from_secs(wall.1),
            cleanup: Duration::from_secs(limits.cleanup_seconds),
            begun: Mutex::new(None),
            changed: Notify::new(),
        }
    }

    /// Returns how long the call has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Asks the guest to end; the first reason stays.
    pub fn begin(&self, why: Why) {
        let mut begun = self.begun.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if begun.is_none() {
            *begun = Some((why, Instant::now()));
            self.changed.notify_waiters();
        }
    }

    pub fn begin_if_wall_passed(&self) {
        if Instant::now() >= self.wall_deadline {
            self.begin(Why::Limit { name: self.wall.0, value: self.wall.1 });
        }
    }

    pub fn why(&self) -> Option<Why> {
        self.lock().as_ref().map(|(why, _)| why.clone())
    }

    /// Until when a host call may take: the wall clock's end, or the cleanup's.
    pub fn deadline(&self) -> Instant {
        match *self.lock() {
            Some((_, since)) => since + self.cleanup,
            None => self.wall_deadline,
        }
    }

    /// When the guest is stopped, whatever it does.
    pub fn hard_deadline(&self) -> Instant {
        match *self.lock() {
            Some((_, since)) => since + self.cleanup,
            None => self.wall_deadline + self.cleanup,
        }
    }

    /// Resolves when the ending begins.
    pub async fn begun(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.lock().is_some() {
                return;
            }
            changed.await;
        }
    }

    /// Resolves when a request that was under way as the ending began is waited for
    /// no longer, so that there is time left to undo it. An upload is not
    /// waited for at all. Answers why.
    pub async fn gives_up_waiting(&self, upload: bool) -> String {
        self.begun().await;
        if !upload {
            tokio::time::sleep(self.cleanup / 2).await;
        }
        self.why().map(|why| why.word()).unwrap_or_default()
    }

    /// Resolves when the guest has to be stopped.
    pub async fn over(&self) {
        self.begun().await;
        tokio::time::sleep_until(self.hard_deadline().into()).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Why, Instant)>> {
        self.begun.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
