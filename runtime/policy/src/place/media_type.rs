//! The Content-Type of requests whose body the policy reads or the host fills.
//!
//! A server decides by the Content-Type how it parses a body, and servers read an unusual one in
//! different ways: some cut it at a comma, some take a missing one for a form. A body that is JSON
//! to this crate and a form to the server has other fields there. So such a request has one type,
//! of exactly the right kind, and no parameter that is not known.

use super::headers::{content_type, essence, parameters, single};
use super::{Fault, headers};
use wasm_cpi_checks::Check;

/// What a server parses a body as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Xml,
    Form,
    Multipart,
    /// Not parsed by the policy: any type that servers do not read as a form. It may be missing,
    /// because the host then sets one.
    Opaque,
}

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";
/// Types for JSON without the usual suffix.
const MORE_JSON: [&str; 3] = ["text/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1"];

impl Format {
    /// Returns true if a type in lower case says this format and no other.
    fn accepts(self, essence: &str) -> bool {
        let Some((kind, subtype)) = essence.split_once('/') else { return false };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte);
        if kind.is_empty() || subtype.is_empty() || !kind.bytes().all(plain) || !subtype.bytes().all(plain) {
            return false;
        }
        let documents = ["application", "text"].contains(&kind);
        // Some servers search the type for a word, or compare its start.
        let lacks = |word: &str| !essence.contains(word);
        let unlike_form = lacks("form") && lacks("urlencoded") && lacks("multipart");
        match self {
            Format::Json => {
                let json = subtype == "json" || subtype.ends_with("+json") || MORE_JSON.contains(&essence);
                json && documents && unlike_form && lacks("xml")
            }
            Format::Xml => {
                let xml = subtype == "xml" || subtype.ends_with("+xml");
                xml && documents && unlike_form && lacks("json")
            }
            Format::Form => essence == FORM,
            Format::Multipart => essence == MULTIPART,
            Format::Opaque => unlike_form,
        }
    }

    /// Returns true for a parameter that does not change how a body is parsed, or that is judged
    /// elsewhere: the charset, the boundary, and the operation of a SOAP message.
    fn knows(self, parameter: &str) -> bool {
        match parameter {
            "charset" => true,
            "boundary" => self == Format::Multipart,
            "action" => self == Format::Xml,
            _ => self == Format::Opaque,
        }
    }

    /// Describes the types that the format needs.
    fn needed(self) -> &'static str {
        match self {
            Format::Json => {
                "JSON: send exactly one type, `application/json` or one that ends in `+json`, with no parameter but \
                 `charset=utf-8`"
            }
            Format::Xml => {
                "XML: send exactly one type, `application/xml`, `text/xml` or one that ends in `+xml`, with no parameter \
                 but `charset=utf-8`"
            }
            Format::Form => "application/x-www-form-urlencoded alone, with no parameter but `charset=utf-8`",
            Format::Multipart => "multipart/form-data alone, with a boundary and no other parameter",
            Format::Opaque => "one type that is not a form; send `application/octet-stream`",
        }
    }
}

/// Rejects a request whose Content-Type is not exactly of this format. The charset and the boundary
/// are judged elsewhere.
pub(super) fn expect(headers: &[(String, String)], format: Format) -> Result<(), Fault> {
    let value = match single(headers, "content-type")? {
        Some((_, value)) => value,
        None if format == Format::Opaque => return Ok(()),
        None => "",
    };
    let known = parameters(value)?.into_iter().all(|(name, _)| format.knows(&name.to_ascii_lowercase()));
    let essence = essence(headers)?.unwrap_or_default();
    let exact = known && !value.contains(',') && format.accepts(&essence);
    Check::PlaceType.ensure(exact, || content_type(format.needed()))?;
    if format == Format::Multipart {
        headers::boundary(headers)?;
    }
    Ok(())
}

/// Returns true if a server may read the body of a request as an urlencoded form: because its type says
/// so, because it has none, or because servers read its type in different ways.
pub fn is_read_as_form(headers: &[(String, String)]) -> bool {
    let exact = |format: Format| {
        let single = single(headers, "content-type").ok().flatten();
        single.is_some_and(|(_, value)| !value.contains(',')) && expect(headers, format).is_ok()
    };
    !exact(Format::Opaque) && !exact(Format::Multipart)
}
