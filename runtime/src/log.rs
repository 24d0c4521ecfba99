//! The log: lines on stderr, and the lines that the response of a failed call carries.
//!
//! The Director copies stderr to the task's CPI log, one byte per read, so lines are short.
//! Text of guests and servers may be hostile: secrets are redacted, control and bidi
//! characters are escaped, and its amount is bounded.

mod escaping;
mod guest_log;

use crate::vault::Vault;
use escaping::printable;
pub use escaping::{escape, escape_text};
pub use guest_log::GuestLog;
use serde::Deserialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use wasm_cpi_checks::Check;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Text,
    Json,
}

/// The largest `log` of a response, which the Director reads byte by byte.
const RESPONSE_LOG_MAX: usize = 16 * 1024;

/// The bytes of a long text that are redacted beyond those that are shown, because redacted
/// secrets are shorter. Searching all of it would take too much time.
const SLACK: usize = 64 * 1024;

pub struct Log {
    level: Level,
    format: Format,
    /// The Director's request id, or `-`.
    request_id: String,
    vault: Arc<Vault>,
    response_log: Mutex<String>,
}

impl Log {
    pub fn new(level: Level, format: Format, request_id: Option<&str>, vault: Arc<Vault>) -> Log {
        let request_id = escape(request_id.unwrap_or("-"), 64);
        Log { level, format, request_id, vault, response_log: Mutex::default() }
    }

    /// Writes a line of the runtime.
    pub fn write(&self, level: Level, message: &str) {
        self.line(level, "wasm-cpi", message, 16 * 1024, "");
    }

    /// Writes a line. `why_cut` follows it if it is longer than `max`.
    fn line(&self, level: Level, source: &str, message: &str, max: usize, why_cut: &str) {
        if !self.keeps(level) {
            return;
        }
        let message = self.cut(message, max, why_cut);
        if level >= Level::Warn {
            // A flood of warnings must leave room for the final error.
            let max = if level == Level::Error { RESPONSE_LOG_MAX } else { RESPONSE_LOG_MAX / 2 };
            self.add_within(&format!("{source} {}: {message}", level.name()), max);
        }
        if level >= self.level {
            self.emit(level.name(), source, &message);
        }
    }

    /// Returns true if a line of this level is written, or kept for the response: warnings are kept even
    /// if the level hides them on stderr.
    fn keeps(&self, level: Level) -> bool {
        level >= self.level.min(Level::Warn)
    }

    /// Writes a line of the HTTP trace at any log level. The caller has redacted and escaped it.
    pub fn trace(&self, source: &str, message: &str) {
        self.emit("trace", source, message);
    }

    fn emit(&self, level: &str, source: &str, message: &str) {
        let line = match self.format {
            Format::Text => format!("{} {source} {level}: {message}\n", self.request_id),
            Format::Json => {
                let fields = serde_json::json!({"request_id": self.request_id, "source": source, "level": level, "message": message});
                format!("{fields}\n")
            }
        };
        // If stderr is closed, there is no place to report that.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    /// Returns a text as one line, or as a part of one, without secrets.
    pub fn clean_field(&self, text: &str, max: usize) -> String {
        self.cut(text, max, "")
    }

    /// Cleans a field of an audit line like `clean_field`, but values that a server chose stay.
    pub fn clean_audit_field(&self, text: &str, max: usize) -> String {
        let redact = |most| self.vault.redact_audit_start(text, most);
        self.cut_redacted(redacted_start(text, max, Check::RedactLog, &redact), max, "")
    }

    fn cut(&self, text: &str, max: usize, why_cut: &str) -> String {
        self.cut_redacted(self.redacted(text, max, Check::RedactLog), max, why_cut)
    }

    fn cut_redacted(&self, (redacted, left_out): (String, usize), max: usize, why_cut: &str) -> String {
        let line = printable(&redacted, max, why_cut, |_| false);
        if left_out > 0 && redacted.len() <= max { format!("{line}… ({left_out} more bytes{why_cut})") } else { line }
    }

    /// Returns a guest's text for a response: one line without secrets, so that no part of it
    /// looks like a line of the runtime.
    pub fn clean_guest_text(&self, text: &str, max: usize) -> String {
        let text = self.redacted(text, max, Check::RedactResponse).0;
        Check::GuestLines.perform(|| escape(&text, max)).unwrap_or_else(|| escape_text(&text, max))
    }

    /// Returns a text of the runtime, of several lines, without secrets.
    pub fn clean_text(&self, text: &str, max: usize) -> String {
        escape_text(&self.redacted(text, max, Check::RedactResponse).0, max)
    }

    /// Does what `redacted_start` does, with all secrets of the vault.
    fn redacted(&self, text: &str, max: usize, check: Check) -> (String, usize) {
        redacted_start(text, max, check, &|most| self.vault.redact_start(text, most))
    }

    /// Adds lines to the `log` that the response carries if the call fails.
    pub fn add_to_response_log(&self, text: &str) {
        self.add_within(text, RESPONSE_LOG_MAX);
    }

    fn add_within(&self, text: &str, max: usize) {
        // Redacted before it is divided into lines, because a secret may have several.
        let most = Check::ResponseLogSize.choose(max.saturating_add(SLACK), usize::MAX);
        let (text, _) = self.vault.redact_start(text, most);
        let mut lines = self.response_log.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for line in text.lines() {
            if Check::ResponseLogSize.accepts(lines.len() + line.len() < max) {
                let _ = writeln!(lines, "{}", escape(line, 4096));
            }
        }
    }

    pub fn response_log(&self) -> String {
        self.response_log.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// Returns at least `max` redacted bytes of the text, if it has them, and how many bytes are left out.
/// Searching for secrets takes time, so only the start of a large text is searched.
fn redacted_start(text: &str, max: usize, check: Check, redact: &dyn Fn(usize) -> (String, usize)) -> (String, usize) {
    let most = max.saturating_add(SLACK);
    check.perform(|| redact(most)).unwrap_or_else(|| {
        let end = text.floor_char_boundary(most);
        (text[..end].to_owned(), text.len() - end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cut_shows_a_part_of_a_secret_however_long_it_is() {
        let vault = Arc::new(Vault::new());
        let secret: String = (0..30_000).map(|n| format!("{n:05x}")).collect();
        vault.register("token", wasm_cpi_policy::secret::Secret::new(secret.as_str()));
        let log = Log::new(Level::Error, Format::Text, None, vault);
        for before in [0, 1000, SLACK, SLACK + 990] {
            let text = format!("{}{secret}", "x".repeat(before));
            for shown in [log.clean_field(&text, 1000), log.clean_text(&text, 1000)] {
                assert!(!shown.contains("00001"), "{before}: {shown}");
            }
        }
        log.add_to_response_log(&format!("{}{secret}", "x\n".repeat(100)));
        assert!(!log.response_log().contains("00001"));
    }

    #[test]
    fn a_secret_of_short_lines_is_redacted_in_the_log_of_the_response() {
        let vault = Arc::new(Vault::new());
        vault.register("password", wasm_cpi_policy::secret::Secret::new("one short\nline after\nanother"));
        let log = Log::new(Level::Error, Format::Text, None, vault);
        log.add_to_response_log("it is one short\nline after\nanother.");
        assert_eq!(log.response_log(), "it is <redacted>.\n");
    }

    #[test]
    fn the_log_of_the_response_holds_warnings_and_is_bounded() {
        let log = Log::new(Level::Error, Format::Text, None, Arc::new(Vault::new()));
        log.write(Level::Debug, "detail");
        log.write(Level::Warn, "warning");
        assert_eq!(log.response_log(), "wasm-cpi warn: warning\n");
        for _ in 0..10_000 {
            log.add_to_response_log("0123456789");
        }
        assert!(log.response_log().len() <= RESPONSE_LOG_MAX);
    }
}
