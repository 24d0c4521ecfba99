//! Changes that complete after a number of reads.
//!
//! The simulators use no timers. A change that takes time in a real cloud completes
//! after a number of reads of the changed resources. So a client that polls sees every
//! state, tests do not wait, and resources that are not read do not change.

/// The changes of one cloud that are in progress.
pub(crate) struct PendingChanges<E> {
    /// The number of reads that see a change in progress before it completes.
    pub(crate) reads: usize,
    pending: Vec<Pending<E>>,
}

struct Pending<E> {
    /// The resources whose reads count.
    subjects: Vec<String>,
    left: usize,
    effect: E,
}

impl<E> PendingChanges<E> {
    pub(crate) fn new() -> PendingChanges<E> {
        PendingChanges { reads: 1, pending: Vec::new() }
    }

    /// Schedules a change that completes after enough reads of these resources.
    pub(crate) fn schedule(&mut self, subjects: &[&str], effect: E) {
        let subjects = subjects.iter().map(|id| (*id).to_owned()).collect();
        self.pending.push(Pending { subjects, left: self.reads, effect });
    }

    /// Schedules a change that completes at the next read of this resource.
    pub(crate) fn schedule_at_next_read(&mut self, subject: &str, effect: E) {
        self.pending.push(Pending { subjects: vec![subject.to_owned()], left: 0, effect });
    }

    /// Cancels the scheduled changes of this resource.
    pub(crate) fn cancel(&mut self, id: &str) {
        self.pending.retain(|pending| !pending.subjects.iter().any(|subject| subject == id));
    }

    /// Counts a read of these resources. Returns the changes that this read completes.
    pub(crate) fn count_read(&mut self, ids: &[&str]) -> Vec<E> {
        let (mut due, mut kept) = (Vec::new(), Vec::new());
        for mut pending in self.pending.drain(..) {
            let counts = pending.subjects.iter().any(|subject| ids.contains(&subject.as_str()));
            if counts && pending.left == 0 {
                due.push(pending.effect);
            } else {
                pending.left -= usize::from(counts);
                kept.push(pending);
            }
        }
        self.pending = kept;
        due
    }
}
