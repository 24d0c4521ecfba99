//! Places in headers, and what the headers say about the body.
//!
//! A header that is read here must occur once. Servers read two headers of one name
//! differently, so such messages are rejected.

use super::{Change, Edit, Fault};
use crate::normalize_header_name;
use wasm_cpi_checks::Check;

type Headers = [(String, String)];

/// Returns true for the characters of a token (RFC 9110).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub(super) fn edit_header(headers: &Headers, name: &str, change: &mut Change<'_>) -> Result<Option<Edit>, Fault> {
    let Some((index, value)) = single(headers, name)? else { return Ok(None) };
    let Some(value) = change(value) else { return Ok(None) };
    let fits = !value.chars().any(|c| c.is_control() && c != '\t') && value.trim() == value;
    if Check::PlaceUnwritable.on() && !fits {
        return Err(Fault::Unwritable("a header has no line breaks, control characters or spaces around it"));
    }
    Ok(Some(Edit::Header(index, value)))
}

/// Edits the value of a cookie. A changed `Set-Cookie` keeps only the name and the value, since
/// the attributes have no use for a guest that gets a seal.
pub(super) fn edit_cookie(headers: &Headers, name: &str, change: &mut Change<'_>) -> Result<Option<Edit>, Fault> {
    let mut found = None;
    for (index, (header, text)) in headers.iter().enumerate() {
        let pairs: Vec<&str> = if header.eq_ignore_ascii_case("set-cookie") {
            text.split(';').take(1).collect()
        } else if header.eq_ignore_ascii_case("cookie") {
            text.split(';').collect()
        } else {
            continue;
        };
        for (at, pair) in pairs.iter().enumerate() {
            let Some((key, value)) = pair.split_once('=') else { continue };
            if key.trim() == name
                && found.replace((index, at, pairs.clone(), value.trim())).is_some()
                && Check::PlaceOnce.on()
            {
                return Err(Fault::Ambiguous);
            }
        }
    }
    let Some((index, at, pairs, value)) = found else { return Ok(None) };
    let Some(value) = change(value) else { return Ok(None) };
    let breaks_out = |c: char| !c.is_ascii_graphic() || matches!(c, ';' | ',' | '"' | '\\');
    if Check::PlaceUnwritable.on() && value.contains(breaks_out) {
        return Err(Fault::Unwritable("a cookie has no spaces, commas, semicolons, quotes or backslashes"));
    }
    let replaced = format!("{name}={value}");
    let text: Vec<&str> = pairs.iter().enumerate().map(|(i, p)| if i == at { &replaced } else { p.trim() }).collect();
    Ok(Some(Edit::Header(index, text.join("; "))))
}

/// Rejects a Content-Type other than JSON. A missing Content-Type is accepted for JSON and XML,
/// because their parsers recognise them.
pub(super) fn expect_json(headers: &Headers) -> Result<(), Fault> {
    match essence(headers)? {
        Some(essence) if Check::PlaceType.on() && !essence.contains("json") => Err(Fault::ContentType("JSON")),
        _ => Ok(()),
    }
}

pub(super) fn expect_xml(headers: &Headers) -> Result<(), Fault> {
    match essence(headers)? {
        Some(essence) if Check::PlaceType.on() && !essence.contains("xml") => Err(Fault::ContentType("XML")),
        _ => Ok(()),
    }
}

pub(super) fn expect_form(headers: &Headers) -> Result<(), Fault> {
    match essence(headers)? {
        Some(essence) if essence == "application/x-www-form-urlencoded" => Ok(()),
        _ if !Check::PlaceType.on() => Ok(()),
        _ => Err(Fault::ContentType("application/x-www-form-urlencoded")),
    }
}

pub(super) fn expect_utf8(headers: &Headers) -> Result<(), Fault> {
    let value = single(headers, "content-type")?.map_or("", |(_, value)| value);
    match parameter(value, "charset")? {
        Some(charset) if !charset.eq_ignore_ascii_case("utf-8") => Err(Fault::ContentType("in UTF-8")),
        _ => Ok(()),
    }
}

/// Rejects a body that a server would decode before it parses it.
pub(super) fn expect_plain(headers: &Headers) -> Result<(), Fault> {
    if headers.iter().any(|(name, _)| normalize_header_name(name) == "content-encoding") {
        return Err(Fault::Malformed("it has a Content-Encoding".into()));
    }
    expect_utf8(headers)
}

/// Returns the boundary of a multipart form.
pub(super) fn boundary(headers: &Headers) -> Result<String, Fault> {
    if essence(headers)?.as_deref() != Some("multipart/form-data") {
        return Err(Fault::ContentType("multipart/form-data"));
    }
    let (_, value) = single(headers, "content-type")?.unwrap_or_default();
    let boundary = parameter(value, "boundary")?.unwrap_or_default();
    let fits = (1..=70).contains(&boundary.len())
        && boundary.bytes().all(|b| b.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&b));
    if fits { Ok(boundary) } else { Err(Fault::Malformed("the Content-Type has no valid boundary".into())) }
}

/// Returns the parameter `name` of a header value like `form-data; name="x"; filename=y`.
pub(super) fn parameter(value: &str, name: &str) -> Result<Option<String>, Fault> {
    let malformed = || Fault::Malformed("a header's parameters are malformed".into());
    let mut rest = value.split_once(';').map_or("", |(_, rest)| rest);
    let mut found = None;
    while !rest.trim().is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(malformed)?;
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(is_token) || key.contains('*') {
            return Err(malformed());
        }
        let (text, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(malformed)?,
            None => after.split_at(after.find(';').unwrap_or(after.len())),
        };
        // Escapes in quoted strings are read differently everywhere.
        if text.contains('\\') {
            return Err(malformed());
        }
        if key.eq_ignore_ascii_case(name) && found.replace(text.trim().to_owned()).is_some() {
            return Err(malformed());
        }
        rest = match after.trim_start() {
            "" => "",
            after => after.strip_prefix(';').ok_or_else(malformed)?,
        };
    }
    Ok(found)
}

/// Returns the media type in lower case, without its parameters.
fn essence(headers: &Headers) -> Result<Option<String>, Fault> {
    let value = single(headers, "content-type")?;
    Ok(value.map(|(_, value)| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()))
}

/// Returns the index and value of a header. Rejects a message that has it more than once.
fn single<'a>(headers: &'a Headers, name: &str) -> Result<Option<(usize, &'a str)>, Fault> {
    // Names that servers make the same are the same.
    let alike = |header: &str| {
        if Check::PlaceAlike.on() {
            normalize_header_name(header) == normalize_header_name(name)
        } else {
            header.eq_ignore_ascii_case(name)
        }
    };
    let mut all = headers.iter().enumerate().filter(|(_, (header, _))| alike(header));
    match (all.next(), all.next()) {
        (_, Some(_)) if Check::PlaceOnce.on() => Err(Fault::Ambiguous),
        (found, _) => Ok(found.map(|(index, (_, value))| (index, value.as_str()))),
    }
}
