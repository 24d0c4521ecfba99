//! The canonical form of a path.

use super::InvalidUrl;
use wasm_cpi_checks::Check;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Returns the canonical form of a path whose dot segments are resolved. Rejects encoded
/// separators, escapes of escapes and `..;`, because servers disagree about their meaning.
pub(super) fn canonical_path(path: &str) -> Result<String, InvalidUrl> {
    let bytes = path.as_bytes();
    let mut canonical = String::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            canonical.push(char::from(byte));
            at += 1;
            continue;
        }
        let decoded = escape(bytes, at + 1);
        Check::PathBrokenEscape
            .ensure(decoded.is_some(), || InvalidUrl::form("has a broken percent-escape in its path"))?;
        let Some(decoded) = decoded else {
            canonical.push('%');
            at += 1;
            continue;
        };
        at += 3;
        Check::PathEncodedSlash.ensure(!matches!(decoded, b'/' | b'\\'), || {
            InvalidUrl::form("has an encoded slash or backslash in its path")
        })?;
        Check::PathEncodedControl
            .ensure(!decoded.is_ascii_control(), || InvalidUrl::form("has an encoded control character in its path"))?;
        let unreserved = decoded.is_ascii_alphanumeric() || b"-._~".contains(&decoded);
        if Check::PathUnreserved.choose(unreserved, false) {
            canonical.push(char::from(decoded));
        } else {
            canonical.push('%');
            canonical.push(char::from(HEX[usize::from(decoded >> 4)]));
            canonical.push(char::from(HEX[usize::from(decoded & 15)]));
        }
    }
    // Looked for in the result: letters that were escaped may be part of it.
    let doubly = |(at, _)| matches!(escape(canonical.as_bytes(), at + 3), Some(b'.' | b'/' | b'\\' | b'%' | b';'));
    Check::PathDoubleEncoding.ensure(!canonical.match_indices("%25").any(doubly), || {
        InvalidUrl::form("has a doubly encoded separator in its path")
    })?;
    let dots = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default();
        // Without its parameters it is a dot segment, or none, to servers that take them off.
        let bare = name.split("%3B").next().unwrap_or_default();
        matches!(bare, "." | "..") || (bare.is_empty() && !segment.is_empty())
    };
    Check::PathDotParameters.ensure(!canonical.split('/').any(dots), || {
        InvalidUrl::form("has a segment of dots, or of nothing, with parameters in its path")
    })?;
    Ok(canonical)
}

/// Returns the byte that two hexadecimal digits at this index stand for.
fn escape(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).copied().and_then(nibble);
    digit(at).zip(digit(at + 1)).map(|(high, low)| high << 4 | low)
}

/// Returns true if a canonical path is UTF-8 once its escapes are decoded.
pub(super) fn is_text(path: &str) -> bool {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        let escape = (byte == b'%').then(|| Some(bytes.next().and_then(nibble)? << 4 | bytes.next().and_then(nibble)?));
        decoded.push(escape.flatten().unwrap_or(byte));
    }
    std::str::from_utf8(&decoded).is_ok()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}
