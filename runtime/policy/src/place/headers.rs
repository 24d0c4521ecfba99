//! Places in headers, and what the headers say about the body.
//!
//! A header that is read here must occur once. Servers read two headers of one name
//! differently, so such messages are rejected.

use super::edit::Edit;
use super::{Fault, FaultKind};
use crate::normalize_header_name;
use wasm_cpi_checks::{Check, RefusedBy};

type Headers = [(String, String)];

/// Receives the value at a place and returns the value to write instead, or `None` to keep it.
type Change<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// Returns true for the characters of a token (RFC 9110).
pub fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub(super) fn edit_header(headers: &Headers, name: &str, change: &mut Change<'_>) -> Result<Option<Edit>, Fault> {
    let Some((index, value)) = single(headers, name)? else { return Ok(None) };
    let Some(value) = change(value) else { return Ok(None) };
    check_header_value(&value)?;
    Ok(Some(Edit::Header(index, value)))
}

/// Rejects what the value of a header cannot hold.
pub(super) fn check_header_value(value: &str) -> Result<(), Fault> {
    let fits = value.bytes().all(|byte| byte == b'\t' || (32..127).contains(&byte)) && value.trim() == value;
    Check::PlaceUnwritable.ensure(fits, || {
        Fault::unwritable("a header holds ASCII without line breaks, control characters or spaces around it")
    })
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
            if key.trim() == name {
                let earlier = found.replace((index, at, pairs.clone(), value.trim()));
                Check::PlaceOnce.ensure(earlier.is_none(), Fault::ambiguous)?;
            }
        }
    }
    let Some((index, at, pairs, value)) = found else { return Ok(None) };
    let Some(value) = change(value) else { return Ok(None) };
    check_cookie_value(&value)?;
    let replaced = format!("{name}={value}");
    let text: Vec<&str> = pairs.iter().enumerate().map(|(i, p)| if i == at { &replaced } else { p.trim() }).collect();
    Ok(Some(Edit::Header(index, text.join("; "))))
}

/// Rejects what the value of a cookie cannot hold.
pub(super) fn check_cookie_value(value: &str) -> Result<(), Fault> {
    let breaks_out = |c: char| !c.is_ascii_graphic() || matches!(c, ';' | ',' | '"' | '\\');
    Check::PlaceUnwritable.ensure(!value.contains(breaks_out), || {
        Fault::unwritable("a cookie has no spaces, commas, semicolons, quotes or backslashes")
    })
}

/// Rejects a Content-Type other than JSON. A missing Content-Type is accepted for JSON and XML,
/// because their parsers recognise them. Servers send many types; `media_type` is stricter with
/// requests, which a server parses.
pub(super) fn expect_json(headers: &Headers) -> Result<(), Fault> {
    let is_json = essence(headers)?.is_none_or(|essence| essence.contains("json"));
    Check::PlaceType.ensure(is_json, || content_type("JSON"))
}

pub(super) fn expect_xml(headers: &Headers) -> Result<(), Fault> {
    let is_xml = essence(headers)?.is_none_or(|essence| essence.contains("xml"));
    Check::PlaceType.ensure(is_xml, || content_type("XML"))
}

pub(super) fn expect_form(headers: &Headers) -> Result<(), Fault> {
    const FORM: &str = "application/x-www-form-urlencoded";
    Check::PlaceType.ensure(essence(headers)?.as_deref() == Some(FORM), || content_type(FORM))
}

pub(super) fn content_type(needed: &'static str) -> Fault {
    FaultKind::ContentType(needed).into()
}

/// Returns a parameter of the Content-Type.
pub(super) fn content_type_parameter(headers: &Headers, name: &str) -> Result<Option<String>, Fault> {
    parameter(single(headers, "content-type")?.map_or("", |(_, value)| value), name)
}

pub(super) fn expect_utf8(headers: &Headers) -> Result<(), Fault> {
    match content_type_parameter(headers, "charset")? {
        Some(charset) if !charset.eq_ignore_ascii_case("utf-8") => Err(content_type("in UTF-8")),
        _ => Ok(()),
    }
}

/// Rejects a body that a server would decode before it parses it.
pub(super) fn expect_plain(headers: &Headers) -> Result<(), Fault> {
    if headers.iter().any(|(name, _)| normalize_header_name(name) == "content-encoding") {
        return Err(Fault::malformed("it has a Content-Encoding"));
    }
    expect_utf8(headers)
}

/// Returns the index of the Content-Type and the boundary in it, if the message is a multipart form.
pub(super) fn multipart_header(headers: &Headers) -> Result<Option<(usize, String)>, Fault> {
    if essence(headers)?.as_deref() != Some("multipart/form-data") {
        return Ok(None);
    }
    let index = single(headers, "content-type")?.map(|(index, _)| index);
    Ok(index.zip(Some(boundary(headers)?)))
}

/// Returns the boundary of a multipart form.
pub(super) fn boundary(headers: &Headers) -> Result<String, Fault> {
    if essence(headers)?.as_deref() != Some("multipart/form-data") {
        return Err(content_type("multipart/form-data").refused_by(Check::PlaceType));
    }
    let (_, value) = single(headers, "content-type")?.unwrap_or_default();
    let boundary = parameter(value, "boundary")?.unwrap_or_default();
    let fits = (1..=70).contains(&boundary.len())
        && boundary.bytes().all(|b| b.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&b));
    let why = "the Content-Type has no valid boundary";
    if fits { Ok(boundary) } else { Err(Fault::malformed(why).refused_by(Check::PlaceType)) }
}

/// Returns the parameter `name` of a header value like `form-data; name="x"; filename=y`.
pub(super) fn parameter(value: &str, name: &str) -> Result<Option<String>, Fault> {
    let mut found = parameters(value)?.into_iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    let (first, second) = (found.next(), found.next());
    if second.is_some() {
        return Err(Fault::malformed(MALFORMED));
    }
    Ok(first.map(|(_, text)| text.to_owned()))
}

const MALFORMED: &str = "a header's parameters are malformed";

/// Returns the names and values of all parameters of a header value.
pub(super) fn parameters(value: &str) -> Result<Vec<(&str, &str)>, Fault> {
    let malformed = || Fault::malformed(MALFORMED);
    let mut rest = value.split_once(';').map_or("", |(_, rest)| rest);
    let mut found = Vec::new();
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
        found.push((key, text.trim()));
        rest = match after.trim_start() {
            "" => "",
            after => after.strip_prefix(';').ok_or_else(malformed)?,
        };
    }
    Ok(found)
}

/// Returns the media type in lower case, without its parameters.
pub(super) fn essence(headers: &Headers) -> Result<Option<String>, Fault> {
    let value = single(headers, "content-type")?;
    Ok(value.map(|(_, value)| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()))
}

/// Returns the index and value of a header. Rejects a message that has it more than once.
pub(super) fn single<'a>(headers: &'a Headers, name: &str) -> Result<Option<(usize, &'a str)>, Fault> {
    let is_same = |header: &str| header.eq_ignore_ascii_case(name);
    // Names that servers make the same are the same.
    let is_alike = |header: &str| {
        Check::PlaceAlike.choose(normalize_header_name(header) == normalize_header_name(name), is_same(header))
    };
    let mut all = headers.iter().enumerate().filter(|(_, (header, _))| is_alike(header));
    let (found, other) = (all.next(), all.next());
    Check::PlaceOnce.reject(found.zip(other), |((_, (one, _)), (_, (other, _)))| {
        let check = if is_same(one) && is_same(other) { Check::PlaceOnce } else { Check::PlaceAlike };
        Fault::ambiguous().refused_by(check)
    })?;
    Ok(found.map(|(index, (_, value))| (index, value.as_str())))
}
