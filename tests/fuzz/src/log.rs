//! Log lines: they are printable, bounded and without secrets. A harmless message is
//! not changed.

use crate::bytes::shows;
use crate::input::{is_harmless, parts};
use std::sync::Arc;
use wasm_cpi::fuzzing::Limits;
use wasm_cpi::fuzzing::Vault;
use wasm_cpi::fuzzing::{Format, GuestLog, Level, Log, escape, escape_text};
use wasm_cpi_policy::secret::Secret;

const SECRET: &str = "correct horse battery staple";

/// The largest size that an escape and the note about a cut add.
const SLACK: usize = 80;

/// The input is the maximum length of a line, and the message.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    let max = parts[0].trim().parse::<usize>().unwrap_or(64) % 5000;
    let text = parts.get(1).copied().unwrap_or_default();
    let line = escape(text, max);
    assert!(line.chars().all(is_harmless) && line.len() <= max + SLACK, "{line:?}");
    let lines = escape_text(text, max);
    assert!(lines.chars().all(|c| c == '\n' || is_harmless(c)) && lines.len() <= max + SLACK, "{lines:?}");
    if text.len() < max && text.chars().all(is_harmless) {
        assert_eq!(line, text);
        assert_eq!(lines, text);
    }

    let vault = Arc::new(Vault::new());
    vault.register("password", Secret::new(SECRET));
    let log = Arc::new(Log::new(Level::Error, Format::Text, Some(text), vault));
    let cleaned = log.clean_text(text, max);
    assert!(cleaned.chars().all(|c| c == '\n' || is_harmless(c)) && cleaned.len() <= max + SLACK);
    assert!(!shows(cleaned.as_bytes(), SECRET.as_bytes()), "{cleaned:?}");

    let limits = Limits { log_lines: 3, ..Limits::default() };
    let guest = GuestLog::new(log.clone(), text, &limits);
    for _ in 0..5 {
        // A warning is below the log's level: it is kept for the response, but not written to stderr.
        guest.write(Level::Warn, text);
    }
    let lines = log.response_log();
    assert!(lines.chars().all(|c| c == '\n' || is_harmless(c)) && lines.len() <= 16 * 1024 + 8192, "{}", lines.len());
    assert!(!shows(lines.as_bytes(), SECRET.as_bytes()), "{lines:?}");
    assert!(lines.lines().count() <= 3, "{lines:?}");
}
