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
    /// Not parsed by the policy: any type with which servers do not look for parameters in the body.
    Document,
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
            // Web forms can be sent as plain text, too.
            Format::Document => unlike_form && essence != "text/plain",
            Format::Opaque => unlike_form,
        }
    }

    /// Returns true for a parameter that does not change how a body is parsed, or that is judged
    /// elsewhere: the charset, the boundary, and the operation of a SOAP message.
    fn knows(self, parameter: &str) -> bool {
        match parameter {
            "charset" => true,
            "boundary" => self == Format::Multipart,
            "action" => matches!(self, Format::Xml | Format::Document),
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
            Format::Document => {
                "one type that is neither a form nor plain text, such as `application/json`, with no parameter but \
                 `charset=utf-8`"
            }
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

#[cfg(test)]
mod tests {
    use super::super::{Message, Place, is_read_as_form, set_missing_type};
    use wasm_cpi_checks::Check;

    fn headers(content_type: &str) -> Vec<(String, String)> {
        let given = (!content_type.is_empty()).then(|| ("Content-Type".to_owned(), content_type.to_owned()));
        given.into_iter().collect()
    }

    #[test]
    fn a_request_has_exactly_the_type_that_the_place_needs() {
        let both = |place: &str, content_type: &str| {
            let message = Message { headers: &headers(content_type), body: b"x" };
            let place: Place = place.parse().unwrap();
            let refused = place.expect_type(&message).err();
            let named = refused.as_ref().is_none_or(|error| error.check() == Some(Check::PlaceType));
            assert!(named || content_type.contains("malformed"), "{place} as {content_type}: {refused:?}");
            assert!(place.expect_type(&Message { headers: &[], body: b"" }).is_ok());
            refused.is_none()
        };
        for (place, content_type) in [
            ("json:/a", "application/json"),
            ("json:/a", "Application/JSON; Charset=\"UTF-8\""),
            ("json:/a", "application/json;charset=utf-8"),
            ("json:/a", "application/merge-patch+json"),
            ("json:/a", "application/vnd.api+json"),
            ("json:/a", "application/x-amz-json-1.1"),
            ("xml:a", "application/xml"),
            ("xml:a", "text/xml; charset=utf-8"),
            ("xml:a", "application/soap+xml; charset=utf-8; action=\"urn:x#Run\""),
            ("form:a", "application/x-www-form-urlencoded; charset=UTF-8"),
            ("part:a", "multipart/form-data; boundary=\"b0\""),
            ("body", "text/plain; charset=utf-8"),
            ("body", "application/octet-stream"),
            ("body", ""),
            ("header:x", "application/x-www-form-urlencoded, application/json"),
        ] {
            assert!(both(place, content_type), "{place} as {content_type}");
        }
        for (place, content_type) in [
            ("json:/a", ""),
            ("json:/a", " "),
            ("json:/a", "json"),
            ("json:/a", "/json"),
            ("json:/a", "application/x-www-form-urlencoded, application/json"),
            ("json:/a", "application/json, application/x-www-form-urlencoded"),
            ("json:/a", "application/json,application/x-www-form-urlencoded"),
            ("json:/a", "application/x-www-form-urlencoded application/json"),
            ("json:/a", "application/x-www-form-urlencoded\tapplication/json"),
            ("json:/a", "application/x-www-form-urlencoded+json"),
            ("json:/a", "multipart/form-data+json"),
            ("json:/a", "multipart/x+json"),
            ("json:/a", "application/xml+json"),
            ("json:/a", "application/jsonp"),
            ("json:/a", "application/json/xml"),
            ("json:/a", "application/json; boundary=x"),
            ("json:/a", "application/json; x=application/x-www-form-urlencoded"),
            ("json:/a", "application/json; charset=\"utf-8,application/x-www-form-urlencoded\""),
            ("xml:a", ""),
            ("xml:a", "application/x-www-form-urlencoded, text/xml"),
            ("xml:a", "application/json+xml"),
            ("xml:a", "image/svg+xml"),
            ("form:a", ""),
            ("form:a", "application/x-www-form-urlencoded, application/json"),
            ("part:a", "multipart/form-data; boundary=b,application/x-www-form-urlencoded"),
            ("part:a", "multipart/form-data; boundary=b; x=y"),
            ("part:a", "multipart/form-data"),
            ("body", "application/x-www-form-urlencoded"),
            ("body", "multipart/form-data; boundary=b"),
            ("body", "text/plain, application/x-www-form-urlencoded"),
        ] {
            assert!(!both(place, content_type), "{place} as {content_type}");
        }
        let twice = [headers("application/json"), headers("application/json")].concat();
        let error = "json:/a".parse::<Place>().unwrap().expect_type(&Message { headers: &twice, body: b"{}" });
        assert_eq!(error.unwrap_err().check(), Some(Check::PlaceOnce));
    }

    #[test]
    fn a_body_that_servers_may_read_as_a_form_is_known() {
        for (content_type, expected) in [
            ("", true),
            ("application/x-www-form-urlencoded", true),
            ("application/json, application/x-www-form-urlencoded", true),
            ("text/plain", false),
            ("application/json; v=1", false),
            ("multipart/form-data; boundary=b", false),
        ] {
            assert_eq!(is_read_as_form(&headers(content_type)), expected, "{content_type}");
        }
        let mut missing = headers("");
        set_missing_type(&mut missing);
        assert!(!is_read_as_form(&missing) && missing.len() == 1);
    }
}
