//! Parts of `multipart/form-data` bodies.
//!
//! The parser is stricter than RFC 7578: it rejects preambles, epilogues, padding after
//! delimiters, folded headers, encoded names, transfer encodings and boundaries behind a line break of one character,
//! because servers disagree about them. It does
//! not search a new value for the boundary, because the result would tell something about a secret:
//! the host chooses a random boundary before it writes one (`set_boundary`).

use std::borrow::Cow;

use super::edit::{Change, Numbered};
use super::error::Unparsable;
use super::headers::{is_token, parameter};
use super::{Fault, FaultKind};
use crate::normalize_parameter_name;
use wasm_cpi_checks::Check;

struct Part<'a> {
    /// The header lines as they were received, without the last line break.
    head: &'a str,
    name: String,
    /// True if servers take the part for an uploaded file.
    is_file: bool,
    content: Cow<'a, [u8]>,
}

pub(super) fn edit(
    body: &[u8],
    boundary: &str,
    names: &Numbered<'_, String>,
    change: &mut Change<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    let delimiter = format!("--{boundary}");
    let mut parts = parse(body, &delimiter).map_err(|error| error.in_format("multipart form"))?;
    let mut changed = false;
    for (number, name) in names {
        let same = parts.iter().filter(|part| part.name == **name).count();
        let alike = parts.iter().filter(|part| is_alike(&part.name, name)).count();
        Check::PlaceOnce.ensure(same <= 1, Fault::ambiguous)?;
        Check::PlaceAlike.ensure(alike <= 1, Fault::ambiguous)?;
        let Some(target) = parts.iter_mut().find(|part| part.name == **name) else { continue };
        Check::PartFile.ensure(!target.is_file, || {
            Fault::malformed("multipart form: the part has a filename, which makes it an uploaded file")
        })?;
        let text = std::str::from_utf8(&target.content).map_err(|_| FaultKind::NotPlain)?;
        if let Some(text) = change(*number, text) {
            target.content = text.into_bytes().into();
            changed = true;
        }
    }
    Ok(changed.then(|| write(&parts, &delimiter)))
}

/// Returns the names of all parts.
pub(super) fn names(body: &[u8], boundary: &str) -> Result<Vec<String>, Fault> {
    let parts = parse(body, &format!("--{boundary}")).map_err(|error| error.in_format("multipart form"))?;
    Ok(parts.into_iter().map(|part| part.name).collect())
}

/// Returns true if servers may read the name of a part as another one. Some end it at white space, or read
/// single quotes as quotes.
fn is_alike(name: &str, other: &str) -> bool {
    let unquoted = name.trim_start_matches('\'').split('\'').next().unwrap_or_default();
    let word = unquoted.split_whitespace().next().unwrap_or_default();
    let other = normalize_parameter_name(other);
    [name, unquoted, word].iter().any(|one| normalize_parameter_name(one) == other)
}

/// Returns the same form with another boundary.
pub(super) fn with_boundary(body: &[u8], old: &str, new: &str) -> Result<Vec<u8>, Fault> {
    let parts = parse(body, &format!("--{old}")).map_err(|error| error.in_format("multipart form"))?;
    Ok(write(&parts, &format!("--{new}")))
}

fn write(parts: &[Part<'_>], delimiter: &str) -> Vec<u8> {
    let mut written = Vec::new();
    for part in parts {
        written.extend_from_slice(format!("{delimiter}\r\n{}\r\n\r\n", part.head).as_bytes());
        written.extend_from_slice(&part.content);
        written.extend_from_slice(b"\r\n");
    }
    written.extend_from_slice(format!("{delimiter}--\r\n").as_bytes());
    written
}

fn parse<'a>(body: &'a [u8], delimiter: &str) -> Result<Vec<Part<'a>>, Unparsable> {
    let closing = format!("\r\n{delimiter}");
    let mut parts = Vec::new();
    let mut rest = body.strip_prefix(delimiter.as_bytes()).ok_or("it does not begin with its boundary")?;
    loop {
        if let Some(end) = rest.strip_prefix(b"--") {
            let complete = end.is_empty() || end == b"\r\n";
            return if complete { Ok(parts) } else { Err("something follows the last boundary".into()) };
        }
        rest = rest.strip_prefix(b"\r\n").ok_or("a boundary is not followed by a line break")?;
        let (head, after) = split(rest, b"\r\n\r\n").ok_or("a part has no end of headers")?;
        let head = std::str::from_utf8(head).map_err(|_| "a part's headers are not UTF-8")?;
        if after.starts_with(delimiter.as_bytes()) {
            return Err("a part begins with the boundary".into());
        }
        let (content, after) = split(after, closing.as_bytes()).ok_or("the last boundary is missing")?;
        let mut windows = content.windows(delimiter.len() + 1);
        let ends_elsewhere = windows.any(|w| matches!(w[0], b'\r' | b'\n') && w[1..] == *delimiter.as_bytes());
        Check::PlaceAlike.ensure(!ends_elsewhere, || {
            Unparsable::from("some servers end a part at a boundary behind a line break of one character")
        })?;
        let (name, is_file) = disposition(head)?;
        parts.push(Part { head, name, is_file, content: content.into() });
        rest = after;
    }
}

/// Returns the name of a part, which its Content-Disposition holds, and whether there is a filename.
fn disposition(head: &str) -> Result<(String, bool), Unparsable> {
    let mut name = None;
    for line in head.split("\r\n") {
        let (header, value) = line.split_once(':').ok_or("a part's header has no colon")?;
        if header.is_empty() || !header.bytes().all(is_token) || value.contains(char::is_control) {
            return Err("a part's headers are folded, or hold characters that do not belong there".into());
        }
        match header.to_ascii_lowercase().as_str() {
            "content-disposition" => {
                let kind = value.split(';').next().unwrap_or_default().trim();
                let found = parameter(value, "name").ok().flatten().filter(|_| kind.eq_ignore_ascii_case("form-data"));
                let found = found.ok_or("a part's Content-Disposition is not `form-data; name=\"…\"`")?;
                Check::PlaceAlike.ensure(!found.contains("=?"), || {
                    Unparsable::from("the name of a part is an encoded word, which only some servers decode")
                })?;
                let is_file = parameter(value, "filename").ok().flatten().is_some();
                if name.replace((found, is_file)).is_some() {
                    return Err("a part has two Content-Dispositions".into());
                }
            }
            "content-transfer-encoding" => Check::PartEncoding
                .refuse(|| Unparsable::from("a part has a transfer encoding; send its content without one"))?,
            _ => {}
        }
    }
    Ok(name.ok_or("a part has no name")?)
}

/// Returns the bytes before and after the first `needle`.
fn split<'a>(bytes: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(needle.len()).position(|window| window == needle)?;
    Some((&bytes[..at], &bytes[at + needle.len()..]))
}
