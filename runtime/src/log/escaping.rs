//! Printable forms of texts that may be hostile.

use std::fmt::Write as _;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::invisible::is_invisible;

/// Returns one printable line: control, bidi and other invisible characters are escaped, and a
/// long line is cut at a character boundary and ends with the number of bytes that are missing.
pub fn escape(text: &str, max: usize) -> String {
    printable(text, max, "", |_| false)
}

/// Returns a printable text like `escape`, but keeps line ends.
pub fn escape_text(text: &str, max: usize) -> String {
    printable(text, max, "", |c| c == '\n')
}

pub(super) fn printable(text: &str, max: usize, why_cut: &str, keep: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len().min(max) + 16);
    for (at, c) in text.char_indices() {
        if escaped.len() >= max {
            let _ = write!(escaped, "… ({} more bytes{why_cut})", text.len() - at);
            break;
        }
        if Check::EscapeLog.refuses((c.is_control() || is_invisible(c)) && !keep(c)) {
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
    fn control_and_invisible_characters_are_escaped() {
        assert_eq!(escape("a\u{1b}[2Jb\nc\u{202e}d\u{200b}", 100), "a\\u{1b}[2Jb\\nc\\u{202e}d\\u{200b}");
    }

    #[test]
    fn a_text_keeps_its_line_ends_and_no_other_control_characters() {
        assert_eq!(escape_text("a\nb\r\u{1b}c", 100), "a\nb\\r\\u{1b}c");
        assert_eq!(escape_text("aaaa", 3), "aaa… (1 more bytes)");
    }

    #[test]
    fn a_long_line_is_cut_and_reports_the_missing_bytes() {
        assert_eq!(escape("ääääää", 6), "äää… (6 more bytes)");
    }
}
