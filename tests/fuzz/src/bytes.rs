//! Encodings, and a search through them. They are implemented here a second time, so
//! that the runtime's own code does not check itself.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

pub(crate) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && bytes.windows(needle.len()).any(|window| window == needle)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes percent escapes, and keeps everything else.
pub(crate) fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let escape = match (first, tail) {
            (b'%', [high, low, ..]) => hex_digit(*high).zip(hex_digit(*low)),
            _ => None,
        };
        match escape {
            Some((high, low)) => {
                decoded.push(high << 4 | low);
                rest = &tail[2..];
            }
            None => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    decoded
}

/// Returns true if the bytes hold the secret: plain, within a JSON string,
/// percent-encoded, in hex or in base64.
pub(crate) fn shows(bytes: &[u8], secret: &[u8]) -> bool {
    let json = json_decoded(bytes);
    [bytes, &json].into_iter().any(|view| {
        let percent = percent_decoded(view);
        contains(view, secret) || contains(&percent, secret) || in_hex(view, secret) || in_base64(view, secret)
    })
}

/// Searches for hex in lower and in upper case, but not in mixed case.
fn in_hex(bytes: &[u8], secret: &[u8]) -> bool {
    let lower = hex(secret);
    contains(bytes, lower.as_bytes()) || contains(bytes, lower.to_ascii_uppercase().as_bytes())
}

fn in_base64(bytes: &[u8], secret: &[u8]) -> bool {
    let letters = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    bytes.split(|byte| !letters(byte)).any(|run| {
        let run: Vec<u8> = run.iter().map(|byte| if *byte == b'-' { b'+' } else { *byte }).collect();
        let run: Vec<u8> = run.into_iter().map(|byte| if byte == b'_' { b'/' } else { byte }).collect();
        (0..4.min(run.len())).any(|from| {
            let whole = &run[from..];
            let whole = &whole[..whole.len() / 4 * 4];
            STANDARD.decode(whole).is_ok_and(|decoded| contains(&decoded, secret))
        })
    })
}

/// Decodes the escapes of JSON strings, and keeps everything else.
pub(crate) fn json_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (text, length) = match (first, tail) {
            (b'\\', [b'u', ..]) => unicode_escape(rest),
            (b'\\', [letter, ..]) => (simple_escape(*letter), 2),
            _ => (None, 1),
        };
        match text {
            Some(text) => {
                decoded.extend_from_slice(text.as_bytes());
                rest = &rest[length..];
            }
            None => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    decoded
}

fn simple_escape(letter: u8) -> Option<String> {
    let byte = match letter {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'"' | b'\\' | b'/' => char::from(letter),
        _ => return None,
    };
    Some(byte.to_string())
}

fn unicode_escape(bytes: &[u8]) -> (Option<String>, usize) {
    for length in [12, 6] {
        let text = bytes.get(..length).and_then(|escape| std::str::from_utf8(escape).ok());
        if let Some(text) = text.and_then(|text| serde_json::from_str::<String>(&format!("\"{text}\"")).ok()) {
            return (Some(text), length);
        }
    }
    (None, 1)
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn base64_url(bytes: &[u8]) -> String {
    URL_SAFE.encode(bytes)
}
