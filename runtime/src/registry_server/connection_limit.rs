//! Limits the number of connections. If there are too many, the connection that has been idle longest
//! is closed for a new one.
//!
//! Without that, clients that connect and send nothing would keep others out until their time is
//! over. A connection whose request is being answered is never closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A connection that has been answered is evicted only after this time without a request, because
/// its last answer may still be on the way.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// The permits of a server's connections.
pub(super) struct ConnectionLimit {
    max: usize,
    next: AtomicU64,
    taken: Mutex<Vec<Taken>>,
    /// Notified when a permit becomes free, or may be taken from an idle connection.
    changed: Notify,
}

struct Taken {
    id: u64,
    activity: Activity,
    evict: Arc<Notify>,
}

/// What a connection does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// It has not sent a complete head of a request since it was opened.
    Silent(Instant),
    /// A request is being answered.
    Busy,
    /// The last request was answered.
    Answered(Instant),
}

/// The permit of one connection, which is free again when this is dropped.
pub(super) struct Permit {
    limit: Arc<ConnectionLimit>,
    id: u64,
    evicted: Arc<Notify>,
}

impl ConnectionLimit {
    pub(super) fn new(max: usize) -> Arc<ConnectionLimit> {
        Arc::new(ConnectionLimit { max, next: AtomicU64::new(0), taken: Mutex::default(), changed: Notify::new() })
    }

    /// Returns a permit, as soon as one is free or an idle connection can lose its own.
    pub(super) async fn take(self: &Arc<ConnectionLimit>) -> Permit {
        loop {
            let changed = self.changed.notified();
            if let Some(permit) = self.try_take() {
                return permit;
            }
            // An answered connection becomes idle without a notification.
            let _ = tokio::time::timeout(ANSWER_TIME, changed).await;
        }
    }

    fn try_take(self: &Arc<ConnectionLimit>) -> Option<Permit> {
        let mut taken = self.lock();
        if taken.len() >= self.max {
            let idle = taken.iter().enumerate().filter_map(|(at, one)| Some((one.activity.idle_since()?, at)));
            let (_, longest) = idle.min()?;
            taken.swap_remove(longest).evict.notify_one();
        }
        let (id, evicted) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(Notify::new()));
        taken.push(Taken { id, activity: Activity::Silent(Instant::now()), evict: Arc::clone(&evicted) });
        Some(Permit { limit: Arc::clone(self), id, evicted })
    }

    /// Waits until no connection is left.
    pub(super) async fn empty(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Activity {
    /// Returns since when the connection is idle; `None` if it must not be closed.
    fn idle_since(self) -> Option<Instant> {
        match self {
            Activity::Silent(since) => Some(since),
            Activity::Busy => None,
            Activity::Answered(since) => (since.elapsed() >= ANSWER_TIME).then_some(since),
        }
    }
}

impl Permit {
    /// Resolves when the permit was given to another connection.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Records that a request is being answered.
    pub(super) fn start_request(&self) {
        self.set(Activity::Busy);
    }

    /// Records that a request was answered.
    pub(super) fn end_request(&self) {
        self.set(Activity::Answered(Instant::now()));
    }

    fn set(&self, now: Activity) {
        if let Some(one) = self.limit.lock().iter_mut().find(|one| one.id == self.id) {
            one.activity = now;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limit.lock().retain(|one| one.id != self.id);
        self.limit.changed.notify_waiters();
    }
}
