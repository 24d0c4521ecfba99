//! Reads the forms of requests, strictly: a guest's test should fail where a server could misread a form.

use std::collections::BTreeMap;

use crate::bindings::bosh::cpi::http;

/// Returns the fields of a request whose body is a form. Returns `None` if it has another Content-Type, a name
/// twice, or bytes that are not properly encoded. For the servers of [`super::Fake::serve`].
///
/// ```
/// use wasm_cpi_sdk::fake::{Answer, Fake, form_fields};
/// use wasm_cpi_sdk::http;
///
/// let _host = Fake::new()
///     .serve(|request| match form_fields(request).as_ref().and_then(|form| form.get("Action")) {
///         Some(action) => Answer::xml(200, &format!("<{action}Response/>")),
///         None => Answer::text(400, ""),
///     })
///     .install();
/// let response = http::post("https://cloud.example/").form(&[("Action", "DescribeVpcs")]).send().unwrap();
/// assert_eq!(response.text().unwrap(), "<DescribeVpcsResponse/>");
/// ```
pub fn form_fields(request: &http::Request) -> Option<BTreeMap<String, String>> {
    match &request.body {
        http::Body::Bytes(bytes) if media_type(request)? == "application/x-www-form-urlencoded" => fields(bytes),
        _ => None,
    }
}

/// Returns the media type of a request in lower case, without its parameters. Returns `None` if the request
/// does not have exactly one.
pub(super) fn media_type(request: &http::Request) -> Option<String> {
    let content_type = header(request, "content-type")?;
    Some(content_type.split(';').next()?.trim().to_ascii_lowercase())
}

/// Returns the value of a header that the request has once.
pub(super) fn header<'a>(request: &'a http::Request, name: &str) -> Option<&'a str> {
    let mut values = request.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    let (_, value) = values.next()?;
    values.next().is_none().then_some(value)
}

fn fields(body: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    for pair in body.split(|byte| *byte == b'&') {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (decode(&pair[..equals])?, decode(&pair[equals + 1..])?);
        if name.is_empty() || fields.insert(name, value).is_some() {
            return None;
        }
    }
    Some(fields)
}

fn decode(text: &[u8]) -> Option<String> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = vec![];
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            b'+' => b' ',
            byte if byte.is_ascii_alphanumeric() || b"-._~*".contains(byte) => *byte,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_forms_are_read() {
        let read = |body: &str| fields(body.as_bytes());
        let expected = BTreeMap::from([("a b".to_owned(), "1&2".to_owned()), ("c".to_owned(), String::new())]);
        assert_eq!(read("a+b=1%262&c="), Some(expected));
        for body in ["", "a", "=1", "a=1&a=2", "a=%", "a=%2", "a=%zz", "a=%ff", "a=1&", "a=\"", "a=1;b=2", "a=b=c"] {
            assert_eq!(read(body), None, "{body}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_form_of_the_sdk_is_read_back(form in proptest::collection::btree_map(r"\PC{1,20}", r"\PC{0,20}", 1..6)) {
            let pairs = form.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            assert_eq!(fields(crate::http::form(pairs).as_bytes()), Some(form.clone()));
        }

        #[test]
        fn any_body_is_read_or_refused(body in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            drop(fields(&body));
        }
    }
}
