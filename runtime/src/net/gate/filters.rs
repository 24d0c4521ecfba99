//! Refuses requests with which a server could filter by values that the guest must not see.
//!
//! Many servers filter by the parameters of a query, and some by the body of a GET. Whether a list is empty would
//! tell the guest whether a hidden value begins with a guess. Where grants hide places, the policy allows only the
//! parameters that it lists. The fields that are hidden by their names are hidden on every origin, so parameters
//! with such a name are refused on every origin, unless the grant lists them. So is the body of a GET: its form is
//! unknown, and every form has escapes of its own.

use super::checking::is_safe_method;
use super::message::ParsedRequest;
use crate::net::error::{HttpError, quoted};
use crate::net::exposure::Exposure;
use crate::net::headers;
use crate::net::response::{names_hidden_field, without_percent};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::{DenialReason, Grant};

/// Rejects a request whose query, path parameters or body could filter by hidden values.
pub(super) fn check(request: &ParsedRequest, grant: &Grant, exposure: Exposure) -> Result<(), HttpError> {
    let ParsedRequest { method, destination, body, image, body_is_listed, .. } = request;
    let mut names = parameter_names(destination.path(), destination.query().unwrap_or_default()).into_iter();
    let hidden = names.find(|name| grant.query.is_none() && names_hidden_field(name, exposure.is_guarded()));
    Check::QueryHidden.reject(hidden, |name| {
        let what = format!("the parameter `{}` could filter by values that responses do not show", quoted(&name));
        let what = format!("{what}; leave it out, or the grant `{}` would have to list it in `query`", grant.id);
        HttpError::denied(DenialReason::Query, what)
    })?;
    let has_body = image.is_some() || !body.is_empty();
    let could_filter = is_safe_method(method) && has_body;
    Check::ReadBody.ensure(!could_filter || *body_is_listed, || {
        let what = "a GET, HEAD or OPTIONS must not have a body, unless `fields` with `\"others\": \"deny\"` list what it holds";
        HttpError::denied(DenialReason::Query, format_args!("{what}; send parameters in the query"))
    })
}

/// Returns the names of the parameters in the query, and of those in the path, as servers could read them. Some
/// servers read `/x(name='a')` and `/x,name=a` as parameters, too.
fn parameter_names(path: &str, query: &str) -> Vec<String> {
    let pairs = query.split(['&', ';']);
    let in_query = pairs.flat_map(|pair| url::form_urlencoded::parse(pair.as_bytes()));
    let decoded = without_percent(path);
    let keys = decoded.split('/').flat_map(|segment| segment.split(['(', ',']).skip(1));
    let keys = keys.filter_map(|key| key.split_once('=')).map(|(name, _)| name.to_owned());
    let in_query = in_query.map(|(name, _)| name.into_owned());
    headers::path_names(path).into_iter().chain(keys).chain(in_query).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_name_is_found_in_every_spelling() {
        for name in [
            "adminPass",
            "admin.pass[like]",
            "adminPa\u{17f}\u{17f}",
            "private\u{212a}ey",
            "\u{ff41}dminPass",
            "admin%50ass",
            "admin%2550ass",
            "admin%u0050ass",
            "admin\\u0050ass",
            "\u{fb01}lter.user:data",
        ] {
            assert!(names_hidden_field(name, false), "{name}");
        }
        for name in ["name", "status", "admin", "%", "100%", "%zz", "%5", "secret", ""] {
            assert!(!names_hidden_field(name, false), "{name}");
        }
        assert!(names_hidden_field("client_%73ecret", true));
    }

    #[test]
    fn parameters_of_path_and_query_are_found() {
        for (path, query, expected) in [
            ("/v1/x", "a=1&b%5Bc%5D=2;d", vec!["a", "b[c]", "d"]),
            ("/v1/x;A=1/y%3bb=2;c", "d=1", vec!["a", "b", "c", "d"]),
            ("/v1/x(a='1',b=2)/y", "c", vec!["a", "b", "c"]),
            ("/v1/x%2ca%3D1", "", vec!["a"]),
            ("/v1/x=1", "", vec![]),
            ("/v1/x", "", vec![]),
        ] {
            assert_eq!(parameter_names(path, query), expected, "{path}?{query}");
        }
    }
}
