//! The needs of the guest under test. The fake denies what they do not declare,
//! as the real host does. Only a run under the runtime shows what an operator must
//! grant in addition.
//!
//! `tests/cases/declared-requests.json` of the repository keeps this module and
//! the runtime's own reader of needs the same.

use super::operations;
use crate::bindings::bosh::cpi::http;
use serde_json::{Value, json};

/// The parts of a needs.json that a native test can exceed.
#[derive(Clone, Debug)]
pub(super) struct Needs(Value);

impl Needs {
    /// Parses the text of a needs.json.
    ///
    /// # Panics
    /// If the text is not a JSON object.
    pub(super) fn parse(text: &str) -> Needs {
        match serde_json::from_str(text) {
            Ok(needs @ Value::Object(_)) => Needs(needs),
            Ok(_) => panic!("the guest's needs are not a JSON object"),
            Err(error) => panic!("the guest's needs are not JSON: {error}"),
        }
    }

    /// Returns the needs in `needs.json` of the crate that cargo tests, if it has
    /// that file.
    pub(super) fn of_tested_crate() -> Option<Needs> {
        let file = std::path::Path::new(&std::env::var_os("CARGO_MANIFEST_DIR")?).join("needs.json");
        std::fs::read_to_string(file).ok().map(|text| Needs::parse(&text))
    }

    /// Returns true if the guest declares this flag: `image` or `registry`.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.0[flag] == Value::Bool(true)
    }

    /// Returns true if the guest declares the login of this name, or all logins.
    pub(super) fn has_login(&self, name: &str) -> bool {
        match &self.0["logins"] {
            Value::String(all) => all == "*",
            Value::Array(names) => names.iter().any(|listed| listed == name),
            _ => false,
        }
    }

    /// Returns why a request is denied, if the needs do not declare it.
    pub(super) fn refusal(&self, request: &http::Request, properties: &str) -> Option<String> {
        let properties: Value = serde_json::from_str(properties).unwrap_or_default();
        let target = Target::parse(&request.url)?;
        let needs = self.0["http"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_declared =
            |need| declares(need, &request.method, &target, &properties) && operations::declares(need, request);
        if needs.iter().any(is_declared) {
            return None;
        }
        let (method, shown) = (&request.method, crate::http::without_query(&request.url));
        Some(format!(
            "policy: the policy refuses {method} {shown}: the guest's needs do not declare it; the guest's author has to \
             declare it: add {} to \"http\" in needs.json",
            suggestion(request, &target, &properties)
        ))
    }
}

/// The origin and path of a URL.
struct Target<'a> {
    scheme: &'a str,
    host: String,
    port: u16,
    path: &'a str,
}

impl<'a> Target<'a> {
    fn parse(url: &'a str) -> Option<Target<'a>> {
        let (scheme, rest) = crate::http::without_query(url).split_once("://")?;
        let default = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, default),
        };
        let path = if path.is_empty() { "/" } else { path };
        Some(Target { scheme, host: host.to_ascii_lowercase(), port, path })
    }

    fn has_origin_of(&self, other: &Target<'_>) -> bool {
        let host = match other.host.strip_prefix("*.") {
            Some(parent) => self.host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == parent),
            None => self.host == other.host,
        };
        host && (self.scheme, self.port) == (other.scheme, other.port)
    }

    /// Returns the rest of the path after the path of a URL that an operator set.
    fn path_below(&self, base: &Target<'_>) -> Option<&'a str> {
        let base = base.path.trim_end_matches('/');
        self.path.strip_prefix(base).filter(|rest| rest.starts_with('/'))
    }
}

fn declares(need: &Value, method: &str, target: &Target<'_>, properties: &Value) -> bool {
    let listed = |key: &str, fits: &dyn Fn(&str) -> bool| match &need[key] {
        Value::String(text) => text == "*",
        Value::Array(list) => list.iter().filter_map(Value::as_str).any(|text| text == "*" || fits(text)),
        _ => false,
    };
    let to = need["to"].as_str().unwrap_or_default();
    let path = if to == "*" {
        Some(target.path)
    } else {
        let to = fill_in(to, properties);
        to.as_deref()
            .and_then(Target::parse)
            .filter(|to| target.has_origin_of(to))
            .and_then(|to| target.path_below(&to))
    };
    path.is_some_and(|path| {
        listed("methods", &|listed| listed == method) && listed("paths", &|pattern| matches(pattern, path))
    })
}

/// Returns true if the pattern of a path matches: `*` is one segment that is not
/// empty, and a trailing `/**` is everything below.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, below) = match pattern.strip_suffix("/**") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut rest = path.split('/');
    let fits =
        |segment: &str| rest.next().is_some_and(|text| if segment == "*" { !text.is_empty() } else { segment == text });
    let prefix = pattern.split('/').all(fits);
    prefix && (below || rest.next().is_none())
}

/// Replaces each `${property}`. Behind a scheme alone, as in `https://${property}`, the property
/// holds a host or a URL. Returns `None` if a property is not a text, or not a host or URL there.
fn fill_in(text: &str, properties: &Value) -> Option<String> {
    let Some((before, rest)) = text.split_once("${") else { return Some(text.to_owned()) };
    let (name, after) = rest.split_once('}')?;
    let value = properties.pointer(&format!("/{}", name.replace('.', "/")))?.as_str()?;
    if matches!(before, "https://" | "http://") && after.is_empty() {
        let is_url = value.contains("://");
        let is_host = !value.contains(['/', '?', '#', '@', '%']);
        return if is_url { Some(value.to_owned()) } else { is_host.then(|| format!("{before}{value}")) };
    }
    Some(format!("{before}{value}{}", fill_in(after, properties)?))
}

/// Returns a need for the request, with the property that holds its URL if there is one.
fn suggestion(request: &http::Request, target: &Target<'_>, properties: &Value) -> Value {
    let found = texts(properties, "").into_iter().find_map(|(name, text)| {
        let base = Target::parse(text).filter(|base| target.has_origin_of(base))?;
        Some((format!("${{{name}}}"), target.path_below(&base)?.to_owned()))
    });
    let default = if target.scheme == "https" { 443 } else { 80 };
    let port = if target.port == default { String::new() } else { format!(":{}", target.port) };
    let origin = || (format!("{}://{}{port}", target.scheme, target.host), target.path.to_owned());
    let (to, path) = found.unwrap_or_else(origin);
    let mut need = json!({"id": "new-need", "to": to, "methods": [request.method], "paths": [path]});
    if let Some(operations) = operations::suggestion(request) {
        need["operations"] = operations;
    }
    need
}

/// Returns all texts in a JSON object with their dotted names.
fn texts<'a>(value: &'a Value, name: &str) -> Vec<(String, &'a str)> {
    match value {
        Value::String(text) => vec![(name.to_owned(), text)],
        Value::Object(map) => {
            let member = |(key, value)| {
                texts(value, &if name.is_empty() { String::clone(key) } else { format!("{name}.{key}") })
            };
            map.iter().flat_map(member).collect()
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, url: &str) -> http::Request {
        let (method, url) = (method.to_owned(), url.to_owned());
        http::Request { method, url, headers: vec![], body: http::Body::None, timeout_ms: None }
    }

    /// The same cases as the runtime's own reader of needs.
    #[test]
    fn exactly_what_the_runtime_sees_as_declared_is_declared() {
        let cases: Vec<Value> =
            serde_json::from_str(include_str!("../../../../tests/cases/declared-requests.json")).unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            let need = json!({"id": "a", "to": case["to"], "methods": case["methods"], "paths": case["paths"]});
            let needs = Needs::parse(&json!({"version": 1, "http": [need]}).to_string());
            let properties = case["properties"].to_string();
            for (key, declared) in [("declared", true), ("undeclared", false)] {
                for sent in case[key].as_array().unwrap() {
                    let (method, url) = sent.as_str().unwrap().split_once(' ').unwrap();
                    assert_eq!(needs.refusal(&request(method, url), &properties).is_none(), declared, "{need}: {sent}");
                }
            }
        }
    }

    #[test]
    fn the_suggested_need_declares_the_request() {
        let properties = json!({"a": {"url": "https://api.test/v2/"}, "region": "r"}).to_string();
        for (url, to, path) in [
            ("https://api.test/v2/vms/1?x=y", "${a.url}", "/vms/1"),
            ("https://other.test:8443/x", "https://other.test:8443", "/x"),
            ("https://api.test/v3", "https://api.test", "/v3"),
        ] {
            let refusal = Needs::parse("{}").refusal(&request("PUT", url), &properties).unwrap();
            let (_, need) = refusal.split_once("add ").unwrap();
            let need: Value = serde_json::from_str(need.strip_suffix(" to \"http\" in needs.json").unwrap()).unwrap();
            assert_eq!((need["to"].as_str(), need["paths"][0].as_str()), (Some(to), Some(path)), "{url}");
            let needs = Needs::parse(&json!({"version": 1, "http": [need]}).to_string());
            assert_eq!(needs.refusal(&request("PUT", url), &properties), None);
            assert!(needs.refusal(&request("GET", url), &properties).is_some());
        }
    }
}
