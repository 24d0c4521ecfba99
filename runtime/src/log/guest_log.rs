//! The log for one guest, which bounds how much the guest writes.

use super::{Level, Log, SLACK, escape};
use crate::limits::Limits;
use crate::vault::LOOKAHEAD;
use std::sync::{Arc, Mutex};

/// The reason for the cut of a guest's line, shown after it. All other maxima are fixed.
const CUT_BY_LINE_BYTES: &str = "; limits.line_bytes";

/// The longest line about an HTTP request: method, URL and outcome.
const EVENT_MAX: usize = 4096;

/// The longest part of a guest's last log line in the message of an error.
const LAST_ERROR_MAX: usize = 1000;

/// The log for one guest, which bounds how much the guest writes.
pub struct GuestLog {
    log: Arc<Log>,
    guest: String,
    line_bytes: usize,
    budget: Mutex<Budget>,
    /// The guest's last line of level error, unredacted. It explains a trap.
    last_error: Mutex<Option<String>>,
}

struct Budget {
    lines: u64,
    bytes: u64,
    dropped: u64,
    limit: &'static str,
}

impl GuestLog {
    pub fn new(log: Arc<Log>, guest: &str, limits: &Limits) -> GuestLog {
        GuestLog {
            log,
            guest: escape(guest, 64),
            line_bytes: usize::try_from(limits.line_bytes).unwrap_or(usize::MAX),
            budget: Mutex::new(Budget { lines: limits.log_lines, bytes: limits.log_kib * 1024, dropped: 0, limit: "" }),
            last_error: Mutex::default(),
        }
    }

    pub fn write(&self, level: Level, message: &str) {
        if level == Level::Error {
            *self.last_error.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(message.to_owned());
        }
        if self.spend(message) {
            self.log.line(level, &self.guest, message, self.line_bytes, CUT_BY_LINE_BYTES);
        }
    }

    /// Returns the length after which more bytes of a line do not change what is shown of it.
    pub fn longest_line(&self) -> usize {
        self.line_bytes.max(LAST_ERROR_MAX).saturating_add(SLACK + LOOKAHEAD + 4)
    }

    /// Writes a line of the runtime about the guest, which counts as a line of the guest.
    pub fn write_runtime_line(&self, level: Level, message: &str) {
        if self.log.keeps(level) && self.spend(message) {
            self.log.line(level, "wasm-cpi", message, EVENT_MAX, "");
        }
    }

    /// Counts a line. Returns false if it must be dropped, because a limit is reached.
    fn spend(&self, message: &str) -> bool {
        let mut budget = self.budget.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let bytes = message.len().min(self.line_bytes) as u64;
        if budget.lines == 0 || budget.bytes < bytes {
            budget.limit = if budget.lines == 0 { "log_lines" } else { "log_kib" };
            budget.dropped += 1;
            return false;
        }
        budget.lines -= 1;
        budget.bytes -= bytes;
        true
    }

    /// Returns the guest's last error without secrets. Only this one is redacted, because a guest can write very many.
    pub fn last_error(&self) -> Option<String> {
        let last = self.last_error.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        last.as_deref().map(|message| self.log.clean_field(message, LAST_ERROR_MAX))
    }

    /// Reports how many lines were dropped.
    pub fn finish(&self) {
        let budget = self.budget.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if budget.dropped > 0 {
            let text = format!(
                "{} log lines of {} were dropped, because `limits.{}` is reached",
                budget.dropped, self.guest, budget.limit
            );
            self.log.line(Level::Warn, "wasm-cpi", &text, 4096, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use crate::vault::Vault;

    #[test]
    fn only_a_line_of_the_guest_is_cut_by_the_limit_of_the_operator() {
        let log = Arc::new(Log::new(Level::Error, Format::Text, None, Arc::new(Vault::new())));
        let guest = GuestLog::new(Arc::clone(&log), "probe", &Limits { line_bytes: 2000, ..Limits::default() });
        guest.write(Level::Error, &"x".repeat(3000));
        assert!(log.response_log().contains("… (1000 more bytes; limits.line_bytes)"));
        // The other maxima are fixed, so raising the limit would change nothing.
        assert!(guest.last_error().unwrap().ends_with("… (2000 more bytes)"));
        guest.write_runtime_line(Level::Warn, &"y".repeat(5000));
        let lines = log.response_log();
        let line = lines.lines().find(|line| line.starts_with("wasm-cpi")).unwrap();
        assert!(line.ends_with("more bytes)") && !line.contains("line_bytes"), "{line}");
    }
}
