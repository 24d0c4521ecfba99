//! Fields of `application/x-www-form-urlencoded` bodies.
//!
//! A form is decoded strictly (complete escapes, UTF-8, no empty names), and a changed form is
//! encoded anew as a whole, so that the server receives exactly what was judged.

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
    let mut pairs = parse(body).map_err(|error| Fault::malformed(error.to_string()).refused_by(error.check))?;
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
    let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
    Ok(Some(encoded.into_bytes()))
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
