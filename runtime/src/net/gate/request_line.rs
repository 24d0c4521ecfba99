//! Decides whether what is sent of an image could be read as the beginning of a request.
//!
//! It matters for a server that answers a request without reading its body: the body is then what the server reads next
//! on the connection. The author of the image wants it to be the head of a request to which the host's next request adds
//! its credentials. For that, the body must begin with a *request line that a real server accepts*: a method, a blank, a
//! target, a blank and a version, after empty lines if there are any. A server that reads another line instead refuses it
//! and closes the connection.
//!
//! Servers do not agree on what these are, so each is read here as the most tolerant server would:
//!
//! - **Blanks:** every byte that is not a visible character of ASCII: control characters, zero bytes, line ends, 0x85,
//!   0xa0 and the bytes of all blanks of Unicode. The same bytes are skipped before the line.
//! - **Line ends:** a line feed, a carriage return, or only both together. The line is therefore taken to be as long as
//!   a server could read it, up to the first CRLF, so that it holds the lines of all other servers.
//! - **Methods:** every word, because some servers pass any word on to the application.
//! - **Targets:** where no version follows, a path or an absolute URL, because servers that do not look for a version
//!   accept only these. With one of the common methods, every target.
//! - **Versions:** `HTTP/` anywhere in the line, in any case.
//!
//! A line that does not end within the body is completed by the next request, which brings a version with it. Nothing of
//! the guest's is in that part, and it adds words that all but the most tolerant servers refuse, so the method must be one
//! that some server knows: a word of letters. A body that is one word could become a part of the next method, such as
//! `PROP` and `PATCH`.
//!
//! Ordinary images and blocks keep their connections. In zeros, nothing is visible, so what the server reads is the next
//! request as it is. In the first line of binary data, a word, a target and a version as above are there by chance only,
//! in about one of a hundred blocks. Only 64 KiB of a line are read: servers that read longer ones take nothing but the common
//! methods and paths, which are at its beginning.

use memchr::memmem;
use wasm_cpi_policy::METHODS;
use wasm_cpi_policy::place::is_token;

/// Tolerant servers do not read longer request lines.
pub(super) const LONGEST_LINE: usize = 64 << 10;

/// No server knows a longer method.
const LONGEST_METHOD: usize = 64;

/// The shortest methods have three letters. Two could be a word of any binary data.
const SHORTEST_METHOD: usize = 3;

/// Returns true if a server could read the beginning of a body as a request line, or as a part of one that the next
/// request completes. `is_complete` is true if the body ends with these bytes.
pub(super) fn may_be_request_line(start: &[u8], is_complete: bool) -> bool {
    let text = &start[start.iter().position(u8::is_ascii_graphic).unwrap_or(start.len())..];
    // The line is in the part of the body that is not known.
    if !is_complete && text.len() <= LONGEST_LINE {
        return true;
    }
    let (word, rest) = text.split_at(length_of_word(text));
    if rest.is_empty() {
        return (1..=LONGEST_METHOD).contains(&word.len()) && word.iter().all(|byte| is_token(*byte));
    }
    let line = longest_line(rest);
    let is_unended = is_complete && line.len() == rest.len();
    is_common_method(word) || begins_with_target(rest) || has_version(line) || (is_unended && is_like_method(word))
}

fn length_of_word(text: &[u8]) -> usize {
    text.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(text.len())
}

/// Returns the longest line that a server could read here.
fn longest_line(text: &[u8]) -> &[u8] {
    let bounded = &text[..text.len().min(LONGEST_LINE)];
    &bounded[..memmem::find(bounded, b"\r\n").unwrap_or(bounded.len())]
}

fn is_common_method(word: &[u8]) -> bool {
    METHODS.iter().any(|method| word.eq_ignore_ascii_case(method.as_bytes()))
}

/// Returns true if a word could be a method of some server.
fn is_like_method(word: &[u8]) -> bool {
    let is_of_letters = word.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'));
    (SHORTEST_METHOD..=LONGEST_METHOD).contains(&word.len()) && is_of_letters
}

/// Returns true if the next word is a path or an absolute URL.
fn begins_with_target(text: &[u8]) -> bool {
    let Some(first) = text.iter().position(u8::is_ascii_graphic) else { return false };
    let target = &text[first..];
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let scheme = target.iter().position(|byte| !is_of_scheme(byte)).unwrap_or(target.len());
    target[0] == b'/' || (scheme > 0 && target[scheme..].starts_with(b":/"))
}

/// Returns true if the line holds the beginning of a version.
fn has_version(line: &[u8]) -> bool {
    memchr::memchr_iter(b'/', line).any(|at| at >= 4 && line[at - 4..at].eq_ignore_ascii_case(b"http"))
}

#[cfg(test)]
mod tests;
