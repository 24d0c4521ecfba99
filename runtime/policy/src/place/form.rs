//! Fields of `application/x-www-form-urlencoded` bodies.
//!
//! A form is decoded strictly (complete escapes, UTF-8, no empty names), and a changed form is
//! encoded anew as a whole, so that the server receives exactly what was judged.

use percent_encoding::percent_encode_byte;
use url::form_urlencoded;

use super::Fault;
use super::edit::{Change, Numbered};
use crate::normalize_parameter_name;
use wasm_cpi_checks::{Check, RefusedBy};

pub(super) fn edit(
    body: &[u8],
    fields: &Numbered<'_, String>,
    change: &mut Change<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    let mut pairs = parse_pairs(body)?;
    let mut changed = false;
    for (number, field) in fields {
        let count = |is_named: &dyn Fn(&str) -> bool| pairs.iter().filter(|(name, _)| is_named(name)).count();
        let normalized = normalize_parameter_name(field);
        let (same, alike) =
            (count(&|name| name == *field), count(&|name| normalize_parameter_name(name) == normalized));
        Check::PlaceOnce.ensure(same <= 1, Fault::ambiguous)?;
        Check::PlaceAlike.ensure(alike <= 1, Fault::ambiguous)?;
        let Some((_, value)) = pairs.iter_mut().find(|(name, _)| name == *field) else { continue };
        if let Some(text) = change(*number, value) {
            *value = text;
            changed = true;
        }
    }
    if !changed {
        return Ok(None);
    }
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(Some(write(pairs).into_bytes()))
}

/// Returns the names of all fields.
pub(super) fn names(body: &[u8]) -> Result<Vec<String>, Fault> {
    Ok(parse_pairs(body)?.into_iter().map(|(name, _)| name).collect())
}

fn parse_pairs(body: &[u8]) -> Result<Vec<(String, String)>, Fault> {
    parse(body).map_err(|error| Fault::malformed(error.to_string()).refused_by(error.check))
}

/// Returns a form with these fields. Everything but letters, digits and `-._~` is escaped, and a space becomes `+`:
/// servers that encode a form again before they verify its signature write it so, and all others can read it.
///
/// ```
/// let form = wasm_cpi_policy::place::write_form([("Name", "a b~*"), ("Size", "1")]);
/// assert_eq!(form, "Name=a+b~%2A&Size=1");
/// ```
pub fn write<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut form = String::new();
    for (name, value) in fields {
        if !form.is_empty() {
            form.push('&');
        }
        encode(name, &mut form);
        form.push('=');
        encode(value, &mut form);
    }
    form
}

fn encode(text: &str, form: &mut String) {
    for byte in text.bytes() {
        match byte {
            b' ' => form.push('+'),
            b'-' | b'.' | b'_' | b'~' => form.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => form.push(char::from(byte)),
            byte => form.push_str(percent_encode_byte(byte)),
        }
    }
}

/// A field of a form is not properly urlencoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {field} of the form is not properly urlencoded")]
pub struct FormError {
    /// The position of the field in the form, counted from 1.
    pub field: usize,
    /// The check that refuses the form.
    pub check: Check,
}

/// Returns the names and values of an urlencoded form in order. Rejects broken escapes, empty
/// names, unencoded characters and text that is not UTF-8.
pub fn parse(body: &[u8]) -> Result<Vec<(String, String)>, FormError> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    Check::PlaceForm
        .perform(|| parse_strictly(body))
        .unwrap_or_else(|| Ok(form_urlencoded::parse(body).into_owned().collect()))
}

fn parse_strictly(body: &[u8]) -> Result<Vec<(String, String)>, FormError> {
    let pairs = body.split(|byte| *byte == b'&').enumerate().map(|(index, pair)| {
        let error = |check| FormError { field: index + 1, check };
        // Some readers end a field at a `;`.
        if Check::PlaceAlike.refuses(pair.contains(&b';')) {
            return Err(error(Check::PlaceAlike));
        }
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = halves.next().and_then(decode).filter(|name| !name.is_empty());
        let value = halves.next().map_or(Some(String::new()), decode);
        name.zip(value).ok_or(error(Check::PlaceForm))
    });
    pairs.collect()
}

/// Servers could find other parameters in a query than the host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the query has a `;`, a zero byte or an escape that servers read in different ways; write `;` as `%3B`")]
pub struct UnclearQuery;

/// Returns the names of the parameters of a query. Rejects a query in which servers could find other names:
/// some end a parameter at a `;`, a zero byte or an escaped `&` like `%u0026`.
pub fn query_names(query: &str) -> Result<Vec<String>, UnclearQuery> {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit) && digits != b"00")
    };
    if query.contains([';', '\0']) || !query.split('%').skip(1).all(is_escape) {
        return Err(UnclearQuery);
    }
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    names.map(|name| decode(name.as_bytes()).ok_or(UnclearQuery)).collect()
}

fn decode(text: &[u8]) -> Option<String> {
    let hex = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => u8::try_from(hex(rest.next())? * 16 + hex(rest.next())?).ok()?,
            b'+' => b' ',
            byte if byte.is_ascii_graphic() => *byte,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_has_one_spelling() {
        let text = "~a*b c\u{e4}+&=%;/'()!\n-._";
        let form = write([("Name.1", text), ("", "")]);
        assert_eq!(form, "Name.1=~a%2Ab+c%C3%A4%2B%26%3D%25%3B%2F%27%28%29%21%0A-._&=");
        let alone = write([(text, text)]);
        assert_eq!(parse(alone.as_bytes()).unwrap(), [(text.to_owned(), text.to_owned())]);
        assert_eq!(write(std::iter::empty()), "");
    }

    #[test]
    fn a_filled_form_is_written_anew_as_a_whole() {
        let filled = edit(b"Data=seal&Name=a%20b%7e*", &[(0, &"Data".to_owned())], &mut |_, _| Some("x~*".to_owned()));
        assert_eq!(filled.ok().flatten().as_deref(), Some(&b"Data=x~%2A&Name=a+b~%2A"[..]));
    }
}
