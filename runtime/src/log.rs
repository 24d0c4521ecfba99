//! Lines on stderr as they happen, and the short story of a failed call.
//!
//! The Director copies stderr to the task's CPI log, one byte per read, so
//! lines are compact. Text of guests and peers is hostile: it is redacted,
//! control and bidi characters are escaped, and its amount is bounded.

use crate::limits::Limits;
use crate::vault::Vault;
use serde::Deserialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use wasm_cpi_checks::Check;
pub use wasm_cpi_policy::invisible::is_invisible;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    fn word(self) -> &'static str {
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

/// What the response's `log` may hold: the Director reads it byte by byte.
const STORY_MAX: usize = 16 * 1024;

/// Longer than any secret that a line could show a part of.
const CUT_MARGIN: usize = 32 * 1024;

/// Why a line was cut.
const LINE_BYTES: &str = "; limits.line_bytes";

/// A request's line: method, URL and outcome.
const EVENT_MAX: usize = 512;

/// Enough of a panic's message for an error's.
const LAST_ERROR_MAX: usize = 1000;

pub struct Log {
    level: Level,
    format: Format,
    /// The Director's request id, or `-`.
    request_id: String,
    vault: Arc<Vault>,
    story: Mutex<String>,
}

impl Log {
    pub fn new(level: Level, format: Format, request_id: Option<&str>, vault: Arc<Vault>) -> Log {
        let request_id = escape(request_id.unwrap_or("-"), 64);
        Log { level, format, request_id, vault, story: Mutex::default() }
    }

    /// A line of the runtime's own.
    pub fn write(&self, level: Level, message: &str) {
        self.line(level, "wasm-cpi", message, 16 * 1024);
    }

    fn line(&self, level: Level, source: &str, message: &str, max: usize) {
        if level < self.level.min(Level::Warn) {
            return;
        }
        let message = self.clean(message, max);
        if level >= Level::Warn {
            // A flood of warnings must leave room for how it ended.
            let max = if level == Level::Error { STORY_MAX } else { STORY_MAX / 2 };
            self.tell_within(&format!("{source} {}: {message}", level.word()), max);
        }
        if level >= self.level {
            self.emit(level.word(), source, &message);
        }
    }

    /// A line that somebody asked for, whatever the level is. Takes it as it is.
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
        // Nobody can be told that stderr is gone.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    /// One line without secrets. Looking for secrets takes time, so of a huge text
    /// only the beginning is looked at; a secret that the cut went through is
    /// within the margin, which is not shown.
    fn clean(&self, message: &str, max: usize) -> String {
        self.cut(message, max, LINE_BYTES)
    }

    /// The same for a part of a line that no limit of the operator's is about.
    pub fn field(&self, text: &str, max: usize) -> String {
        self.cut(text, max, "")
    }

    fn cut(&self, text: &str, max: usize, why_cut: &str) -> String {
        let (redacted, left_out) = self.redacted_head(text, max, Check::RedactLog);
        let line = printable(&redacted, max, why_cut, |_| false);
        if left_out > 0 && redacted.len() <= max { format!("{line}… ({left_out} more bytes{why_cut})") } else { line }
    }

    /// A guest's words in an answer: one line, so that none of it looks like ours.
    pub fn guest_words(&self, text: &str, max: usize) -> String {
        if !Check::GuestLines.on() {
            return self.clean_text(text, max);
        }
        escape(&self.redacted_head(text, max, Check::RedactAnswer).0, max)
    }

    /// Our own text of several lines.
    pub fn clean_text(&self, text: &str, max: usize) -> String {
        escape_text(&self.redacted_head(text, max, Check::RedactAnswer).0, max)
    }

    /// At least `max` bytes of the text, if it has them, and how many are left out.
    fn redacted_head(&self, text: &str, max: usize, check: Check) -> (String, usize) {
        let end = text.floor_char_boundary(max.saturating_add(2 * CUT_MARGIN));
        let mut redacted = if check.on() { self.vault.redact(&text[..end]) } else { text[..end].to_owned() };
        if end < text.len() {
            redacted.truncate(redacted.floor_char_boundary(redacted.len().saturating_sub(CUT_MARGIN)));
        }
        (redacted, text.len() - end)
    }

    /// Adds to the story that the response carries if the call fails.
    pub fn tell(&self, text: &str) {
        self.tell_within(text, STORY_MAX);
    }

    fn tell_within(&self, text: &str, max: usize) {
        let mut story = self.story.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for line in text.lines() {
            if story.len() + line.len() < max || !Check::StorySize.on() {
                let _ = writeln!(story, "{}", escape(&self.vault.redact(line), 4096));
            }
        }
    }

    pub fn story(&self) -> String {
        self.story.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// The guest's share of the log, with its bounds.
pub struct GuestLog {
    log: Arc<Log>,
    guest: String,
    line_bytes: usize,
    left: Mutex<Left>,
    /// The newest error, as it came: what a guest that traps said before.
    last_error: Mutex<Option<String>>,
}

struct Left {
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
            left: Mutex::new(Left { lines: limits.log_lines, bytes: limits.log_kib * 1024, dropped: 0, limit: "" }),
            last_error: Mutex::default(),
        }
    }

    pub fn write(&self, level: Level, message: &str) {
        if level == Level::Error {
            *self.last_error.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(message.to_owned());
        }
        if self.take(message) {
            self.log.line(level, &self.guest, message, self.line_bytes);
        }
    }

    /// More of a line makes no difference to what is shown of it.
    pub fn longest_line(&self) -> usize {
        self.line_bytes.saturating_add(2 * CUT_MARGIN + 4)
    }

    /// A line of the runtime's about the guest, within the guest's bounds.
    pub fn write_of_runtime(&self, level: Level, message: &str) {
        if level >= self.log.level.min(Level::Warn) && self.take(message) {
            self.log.line(level, "wasm-cpi", message, EVENT_MAX);
        }
    }

    /// Whether the line is within the bounds.
    fn take(&self, message: &str) -> bool {
        let mut left = self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let bytes = message.len().min(self.line_bytes) as u64;
        if left.lines == 0 || left.bytes < bytes {
            left.limit = if left.lines == 0 { "log_lines" } else { "log_kib" };
            left.dropped += 1;
            return false;
        }
        left.lines -= 1;
        left.bytes -= bytes;
        true
    }

    /// Cleaned only now: of a flood of errors one is asked for.
    pub fn last_error(&self) -> Option<String> {
        let last = self.last_error.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        last.as_deref().map(|message| self.log.clean(message, LAST_ERROR_MAX))
    }

    /// Says what was left out.
    pub fn finish(&self) {
        let left = self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if left.dropped > 0 {
            let text = format!("{} lines of {} dropped: `limits.{}` is reached", left.dropped, self.guest, left.limit);
            self.log.line(Level::Warn, "wasm-cpi", &text, 4096);
        }
    }
}

/// One printable line: control, bidi and other invisible characters escaped, cut
/// at a character boundary. A long line says how much is missing.
pub fn escape(text: &str, max: usize) -> String {
    printable(text, max, LINE_BYTES, |_| false)
}

/// The same for a text of several lines.
pub fn escape_text(text: &str, max: usize) -> String {
    printable(text, max, "", |c| c == '\n')
}

fn printable(text: &str, max: usize, why_cut: &str, keep: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len().min(max) + 16);
    for (at, c) in text.char_indices() {
        if escaped.len() >= max {
            let _ = write!(escaped, "… ({} more bytes{why_cut})", text.len() - at);
            break;
        }
        if Check::EscapeLog.on() && (c.is_control() || is_invisible(c)) && !keep(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_move_the_cursor_or_hide() {
        assert_eq!(escape("a\u{1b}[2Jb\nc\u{202e}d\u{200b}", 100), "a\\u{1b}[2Jb\\nc\\u{202e}d\\u{200b}");
    }

    #[test]
    fn a_text_keeps_its_lines_and_nothing_else() {
        assert_eq!(escape_text("a\nb\r\u{1b}c", 100), "a\nb\\r\\u{1b}c");
        assert_eq!(escape_text("aaaa", 3), "aaa… (1 more bytes)");
    }

    #[test]
    fn a_long_line_is_cut_and_says_so() {
        assert_eq!(escape("ääääää", 6), "äää… (6 more bytes; limits.line_bytes)");
    }

    #[test]
    fn the_story_holds_warnings_and_is_bounded() {
        let log = Log::new(Level::Error, Format::Text, None, Arc::new(Vault::new()));
        log.write(Level::Debug, "not told");
        log.write(Level::Warn, "told");
        assert_eq!(log.story(), "wasm-cpi warn: told\n");
        for _ in 0..10_000 {
            log.tell("0123456789");
        }
        assert!(log.story().len() <= STORY_MAX);
    }
}
