//! Fields of `application/x-www-form-urlencoded` bodies.
//!
//! A form is decoded strictly (complete escapes, UTF-8, no empty names), and a changed form is
//! encoded anew as a whole, so that the server receives exactly what was judged.

use url::form_urlencoded;

use super::{Change, Fault};
use wasm_cpi_checks::Check;

pub(super) fn edit(body: &[u8], field: &str, change: &mut Change<'_>) -> Result<Option<Vec<u8>>, Fault> {
    let mut pairs = parse(body).map_err(|error| Fault::Malformed(error.to_string()))?;
    let alike = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(field);
    if Check::PlaceAlike.on() && pairs.iter().filter(alike).count() > 1 {
        return Err(Fault::Ambiguous);
    }
    let mut targets = pairs.iter_mut().filter(|(name, _)| name == field);
    let Some((_, value)) = targets.next() else { return Ok(None) };
    if Check::PlaceOnce.on() && targets.next().is_some() {
        return Err(Fault::Ambiguous);
    }
    let Some(text) = change(value) else { return Ok(None) };
    *value = text;
    let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
    Ok(Some(encoded.into_bytes()))
}

/// A field of a form is not properly urlencoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {field} of the form is not properly urlencoded")]
pub struct FormError {
    /// The position of the field in the form, counted from 1.
    pub field: usize,
}

/// Returns the names and values of an urlencoded form in order. Rejects broken escapes, empty
/// names, unencoded characters and text that is not UTF-8.
pub fn parse(body: &[u8]) -> Result<Vec<(String, String)>, FormError> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    if !Check::PlaceForm.on() {
        return Ok(form_urlencoded::parse(body).into_owned().collect());
    }
    let pairs = body.split(|byte| *byte == b'&').enumerate().map(|(index, pair)| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = halves.next().and_then(decode).filter(|name| !name.is_empty());
        let value = halves.next().map_or(Some(String::new()), decode);
        name.zip(value).ok_or(FormError { field: index + 1 })
    });
    pairs.collect()
}

fn decode(text: &[u8]) -> Option<String> {
    let hex = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => u8::try_from(hex(rest.next())? * 16 + hex(rest.next())?).ok()?,
            b'+' => b' ',
            // Some readers end a field there.
            b';' if Check::PlaceAlike.on() => return None,
            byte if byte.is_ascii_graphic() => *byte,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}
