//! Policies, needs and requests from a small world, so that they often meet, and
//! an oracle that judges them by the text of the grammar alone.
//!
//! The oracle works on the JSON as it is written. It shares no code with the
//! policy: no patterns, no origins, no destinations.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

/// The values of the properties in `${…}`. No property is named `unset`.
pub(super) const PROPERTIES: [(&str, &str); 3] =
    [("url", "https://b.a.test:8443/b"), ("zone", "c"), ("host", "b.a.test:8443")];

pub(super) fn properties() -> Value {
    PROPERTIES
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

pub(super) const HOSTS: [&str; 5] = ["a.test", "b.a.test", "c.a.test", "d.c.a.test", "10.0.0.5"];
pub(super) const PORTS: [u16; 3] = [443, 8443, 80];

/// Lists origins that grants and needs name, common ones first.
pub(super) const ORIGINS: [&str; 12] = [
    "https://a.test",
    "https://b.a.test",
    "https://*.a.test",
    "https://*.a.test:8443",
    "${url}",
    "https://b.a.test:8443",
    "http://a.test",
    "https://*.c.a.test",
    "https://${zone}.a.test",
    "https://d.${zone}.a.test",
    "https://10.0.0.5",
    "https://${host}",
];

/// Lists origins that only needs name.
pub(super) const OF_NEEDS: [&str; 3] = ["*", "${unset}", "https://${unset}.a.test"];

/// A request that is judged.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: &'static str,
    scheme: &'static str,
    host: &'static str,
    port: u16,
    path: String,
    operation: Option<&'static str>,
    /// The only parameter of the query.
    parameter: Option<&'static str>,
}

impl Asked {
    pub(super) fn get(scheme: &'static str, host: &'static str, port: u16, path: &str) -> Asked {
        Asked { method: "GET", scheme, host, port, path: path.to_owned(), operation: None, parameter: None }
    }

    pub(super) fn has_operation(&self) -> bool {
        self.operation.is_some()
    }

    pub(super) fn has_parameter(&self) -> bool {
        self.parameter.is_some()
    }

    pub(super) fn origin(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.host, self.port)
    }

    pub(super) fn url(&self) -> String {
        let query = self.parameter.map_or(String::new(), |name| format!("?{name}=1"));
        format!("{}{}{query}", self.origin(), self.path)
    }

    pub(super) fn headers(&self) -> Vec<(String, String)> {
        self.operation.iter().map(|operation| ("X-Op".to_owned(), (*operation).to_owned())).collect()
    }
}

pub(super) fn asked() -> impl Strategy<Value = Asked> {
    let host = prop_oneof![5 => Just("a.test"), 6 => Just("b.a.test"), 1 => select(HOSTS[2..].to_vec())];
    let port = prop_oneof![6 => Just(443), 3 => Just(8443), 1 => Just(80)];
    let scheme = prop_oneof![11 => Just("https"), 1 => Just("http")];
    let path = r"(/(a|b|c)){1,3}|/|/a/|//a";
    let operation = proptest::option::of(select(vec!["Run", "Stop"]));
    let parameter = proptest::option::weighted(0.3, select(vec!["q", "r"]));
    (select(METHODS.to_vec()), scheme, host, port, path, operation, parameter).prop_map(
        |(method, scheme, host, port, path, operation, parameter)| Asked {
            method,
            scheme,
            host,
            port,
            path,
            operation,
            parameter,
        },
    )
}

/// Generates the origin of a need, or of a grant, whose properties are set.
fn origin(of_need: bool) -> BoxedStrategy<&'static str> {
    let (common, rare) = (select(ORIGINS[..5].to_vec()), select(ORIGINS[5..].to_vec()));
    if of_need {
        let unset = select(OF_NEEDS[1..].to_vec());
        prop_oneof![8 => common, 3 => rare, 1 => unset, 6 => Just(OF_NEEDS[0])].boxed()
    } else {
        prop_oneof![8 => common, 3 => rare].boxed()
    }
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    let one = prop_oneof![2 => r"(/(\*|a|b)){1,3}(/\*\*)?", 1 => Just("/**".to_owned()), 1 => select(vec!["/", "/a/", "/a/**", "/*", "/*/*"]).prop_map(str::to_owned)];
    proptest::collection::vec(one, 1..3)
}

fn methods() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(METHODS.to_vec(), 1..=4)
}

pub(super) fn grant() -> impl Strategy<Value = Value> {
    let operations = proptest::option::weighted(0.2, subsequence(vec!["Run", "Stop"], 1..=2));
    let query = proptest::option::weighted(0.3, subsequence(vec!["q", "r"], 0..=2));
    (origin(false), methods(), paths(), operations, query).prop_map(|(to, methods, paths, operations, query)| {
        let mut grant = json!({"to": to, "methods": methods, "paths": paths});
        if let Some(query) = query {
            grant["query"] = json!(query);
        }
        if let Some(allow) = operations {
            grant["operations"] = json!({"in": "header:X-Op", "allow": allow});
        }
        grant
    })
}

/// Generates grants, each with an id of its own.
pub(super) fn grants(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<Value>> {
    proptest::collection::vec(grant(), count).prop_map(|mut grants| {
        for (number, grant) in grants.iter_mut().enumerate() {
            grant["id"] = json!(format!("n{number}"));
        }
        grants
    })
}

pub(super) fn policy(grants: &[Value]) -> Value {
    json!({"version": 1, "http": grants})
}

fn slots() -> impl Strategy<Value = Value> {
    let place = select(vec!["json:/a", "json:/b", "body"]);
    let slot =
        (select(vec!["POST", "PUT"]), r"(/(\*|a|b)){1,2}(/\*\*)?", place, subsequence(vec!["agent", "zone"], 1..=2))
            .prop_map(
                |(method, path, place, takes)| json!({"method": method, "path": path, "place": place, "takes": takes}),
            );
    prop_oneof![1 => Just(json!("*")), 5 => proptest::collection::vec(slot, 0..3).prop_map(|slots| json!(slots))]
}

fn need() -> impl Strategy<Value = Value> {
    let methods = prop_oneof![1 => Just(json!("*")), 2 => methods().prop_map(|methods| json!(methods))];
    let paths = prop_oneof![1 => Just(json!("*")), 6 => paths().prop_map(|paths| json!(paths))];
    let listed = subsequence(vec!["Run", "Stop"], 1..=2).prop_map(|allow| json!({"in": "header:X-Op", "allow": allow}));
    let operations = prop_oneof![3 => Just(json!(null)), 2 => Just(json!("*")), 1 => listed];
    (origin(true), methods, paths, slots(), operations).prop_map(|(to, methods, paths, slots, operations)| {
        let mut need = json!({"to": to, "methods": methods, "paths": paths, "slots": slots});
        if !operations.is_null() {
            need["operations"] = operations;
        }
        need
    })
}

/// Generates the content of a needs section.
pub(super) fn needs() -> impl Strategy<Value = Value> {
    let expose = subsequence(vec!["zone", "net", "net.zone", "network"], 0..=4);
    (proptest::collection::vec(need(), 0..4), any::<bool>(), any::<bool>(), expose).prop_map(
        |(mut http, registry, image, expose)| {
            for (number, need) in http.iter_mut().enumerate() {
                need["id"] = json!(format!("n{number}"));
            }
            json!({"version": 1, "http": http, "registry": registry, "image": image, "expose": expose})
        },
    )
}

/// Returns true if a grant or need, as it is written, is about this request.
pub(super) fn is_about(entry: &Value, asked: &Asked) -> bool {
    let all = |value: &Value| *value == json!("*");
    let listed = |key: &str, matches: &dyn Fn(&str) -> bool| {
        all(&entry[key]) || entry[key].as_array().unwrap().iter().any(|one| matches(one.as_str().unwrap()))
    };
    let below = |key: &str| {
        let matches = |path: &str| {
            let pattern: Vec<&str> = base(&entry["to"]).iter().copied().chain(segments(path)).collect();
            path_is(&pattern, &segments(&asked.path))
        };
        if all(&entry[key]) { matches("/**") } else { listed(key, &matches) }
    };
    let operation = match entry["operations"]["allow"].as_array() {
        None => true,
        Some(allow) => asked.operation.is_some_and(|operation| allow.contains(&json!(operation))),
    };
    let query = match (asked.parameter, entry["query"].as_array()) {
        (Some(name), Some(allowed)) => allowed.contains(&json!(name)),
        _ => true,
    };
    (all(&entry["to"]) || origin_is(entry["to"].as_str().unwrap(), asked))
        && listed("methods", &|method| method == asked.method)
        && below("paths")
        && query
        && operation
}

/// Returns true if a grant is about this request. Beside operations, it allows only query parameters that it lists.
pub(super) fn is_granted_by(grant: &Value, asked: &Asked) -> bool {
    let limits_query = !grant["operations"].is_null() && grant["query"].is_null();
    is_about(grant, asked) && !(limits_query && asked.parameter.is_some())
}

/// Returns how specific a grant is that is about a request: the greatest value decides.
pub(super) fn rank(grant: &Value, asked: &Asked) -> (bool, (usize, usize, bool), bool) {
    let patterns = grant["paths"].as_array().unwrap().iter().map(|path| {
        let written = segments(path.as_str().unwrap());
        base(&grant["to"]).iter().copied().chain(written).collect::<Vec<&str>>()
    });
    let ranks = patterns.filter(|pattern| path_is(pattern, &segments(&asked.path))).map(|mut pattern| {
        let below = pattern.last() == Some(&"**");
        pattern.retain(|segment| *segment != "**");
        (pattern.iter().filter(|segment| **segment != "*").count(), pattern.len(), !below)
    });
    let exact = !grant["to"].as_str().unwrap().contains('*');
    (exact, ranks.max().unwrap(), !grant["operations"].is_null())
}

/// Returns the segments of the path in the URL that `${url}` stands for.
fn base(to: &Value) -> &'static [&'static str] {
    if *to == json!("${url}") { &["b"] } else { &[] }
}

fn segments(path: &str) -> Vec<&str> {
    path[1..].split('/').collect()
}

fn path_is(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        (["**"], _) | ([], []) => true,
        (["*", pattern @ ..], [segment, path @ ..]) => !segment.is_empty() && path_is(pattern, path),
        ([literal, pattern @ ..], [segment, path @ ..]) => literal == segment && path_is(pattern, path),
        _ => false,
    }
}

fn origin_is(written: &str, asked: &Asked) -> bool {
    let mut text = written.to_owned();
    for (name, value) in PROPERTIES {
        text = text.replace(&format!("${{{name}}}"), value.strip_suffix("/b").unwrap_or(value));
    }
    let (scheme, rest) = match text.split_once("://") {
        Some(parts) if !text.contains('$') => parts,
        _ => return false,
    };
    let (host, port) = match rest.split_once(':') {
        Some((host, port)) => (host, port.parse().unwrap()),
        None => (rest, if scheme == "https" { 443 } else { 80 }),
    };
    let (own, other): (Vec<&str>, Vec<&str>) = (host.split('.').collect(), asked.host.split('.').collect());
    let labels = own.len() == other.len() && own.iter().zip(&other).all(|(own, other)| own == other || *own == "*");
    scheme == asked.scheme && port == asked.port && labels
}
