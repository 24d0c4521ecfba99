//! How places are written: `header:X`, `json:/a/b`, `body`.

use std::str::FromStr;

use super::error::Unparsable;
use super::{Fault, FaultKind, Place, PlaceError, is_token, json, xml};
use crate::invisible::is_invisible;
use wasm_cpi_checks::Check;

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        parse(text).map_err(|Unparsable { why, check }| {
            let fault = Fault { kind: FaultKind::Syntax(why), check };
            PlaceError { place: text.to_owned(), fault }
        })
    }
}

fn parse(text: &str) -> Result<Place, Unparsable> {
    if text == "body" {
        return Ok(Place::Body);
    }
    let (kind, key) = text.split_once(':').ok_or(KINDS)?;
    let token = |why| if !key.is_empty() && key.bytes().all(is_token) { Ok(key) } else { Err(why) };
    match kind {
        "header" => Ok(Place::Header(token("a header's name has letters, digits and `-` only")?.to_lowercase())),
        "cookie" => Ok(Place::Cookie(token("a cookie's name has letters, digits and `-_.` only")?.to_owned())),
        "json" => json::pointer(key).map(Place::Json),
        "xml" if xml::names(key).iter().all(|name| xml::is_local_name(name)) => Ok(Place::Xml(key.to_owned())),
        "xml" => Err("an element is given by its local name, or by its path of local names, like `/R/E`".into()),
        "form" => Ok(Place::Form(field_name(key)?)),
        "part" => Ok(Place::Part(field_name(key)?)),
        _ => Err(KINDS.into()),
    }
}

/// Returns the name of a field or part. Rejects names that cannot be written or reviewed.
fn field_name(name: &str) -> Result<String, Unparsable> {
    const WHY: &str = "the name must not be empty, nor hold quotes, backslashes, control or invisible characters";
    if name.is_empty() || name.contains(['"', '\\']) {
        return Err(WHY.into());
    }
    check_visible(name, WHY)?;
    Ok(name.to_owned())
}

/// Rejects control and invisible characters, because people read and paste the places that a
/// guest declares.
pub(super) fn check_visible(name: &str, why: &'static str) -> Result<(), Unparsable> {
    let visible = !name.contains(|c: char| c.is_control() || is_invisible(c));
    Check::PlaceHidden.ensure(visible, || Unparsable::from(why))
}

const KINDS: &str =
    "a place is one of `header:NAME`, `json:/POINTER`, `form:FIELD`, `xml:ELEMENT`, `part:NAME`, `cookie:NAME`, `body`";
