//! A request, checked against a policy, properties and needs.
//!
//! A request that is allowed must also be allowed by a second implementation here. A
//! request that is denied with a suggested grant must be allowed once the policy has
//! that grant.

use crate::input::{message, object, parts};
use serde_json::{Value, json};
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::place::Message;
use wasm_cpi_policy::{Denial, Endpoint, Grant, Needs, Policy, PolicyFile, Properties, Verdict};

/// Endpoints that no policy can grant.
pub(crate) const FORBIDDEN: [(&str, &str); 2] =
    [("the registry", "http://registry.test:25777"), ("the message bus", "nats://10.0.0.6:4222")];

pub(crate) struct Case<'a> {
    pub(crate) properties: Properties,
    pub(crate) needs: Option<Needs>,
    pub(crate) destination: &'a Destination,
    pub(crate) method: &'a str,
    pub(crate) message: Message<'a>,
}

/// The input is a policy, `METHOD URL`, needs, the properties of the job, those of the
/// context, and the message.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    let Ok(written) = serde_json::from_str::<Value>(parts[0]) else {
        assert!(PolicyFile::parse(parts[0]).is_err(), "a policy that is not JSON was accepted");
        return;
    };
    let (method, url) = parts.get(1).and_then(|line| line.trim().split_once(' ')).unwrap_or(("GET", ""));
    let needs = match parts.get(2).filter(|text| !text.trim().is_empty()) {
        None => None,
        Some(text) => match Needs::parse(text.as_bytes()) {
            Ok(needs) => Some(needs),
            Err(_) => return,
        },
    };
    let properties = Properties::merge(object(parts.get(3)), object(parts.get(4)));
    let (headers, body) = message(parts.get(5).unwrap_or(&""));
    let destination = match Destination::parse(url, 8192) {
        Ok(destination) => destination,
        Err(_) => return drop(PolicyFile::parse(parts[0])),
    };
    let message = Message { headers: &headers, body: body.as_bytes() };
    let case = Case { properties, needs, destination: &destination, method, message };
    let Some(policy) = case.resolve(&written) else { return };
    match policy.judge(case.destination, case.method, &case.message) {
        Verdict::Allowed { grant, .. } => case.check_allowed(&grant, &written),
        Verdict::Denied(denial) => case.check_denied(&denial, written),
    }
}

impl Case<'_> {
    pub(crate) fn resolve(&self, written: &Value) -> Option<Policy> {
        let file = PolicyFile::parse(&written.to_string()).ok()?;
        let forbidden: Vec<Endpoint> =
            FORBIDDEN.iter().filter_map(|(what, url)| Endpoint::from_url(what, url)).collect();
        Policy::resolve(&file, &self.properties, self.needs.as_ref(), &forbidden, false).ok()
    }

    fn check_allowed(&self, grant: &Grant, written: &Value) {
        let (destination, origin) = (self.destination, grant.origin.to_string());
        let asked = destination.origin();
        assert!(is_origin(&origin, &asked), "{origin} does not grant {asked}");
        assert!(!["http://registry.test:25777", "https://registry.test:25777"].contains(&asked.as_str()), "{asked}");
        assert!(!asked.contains("//169.254.") && !asked.contains("//0.0.0.0"), "{asked}");
        let own = written["http"].as_array().into_iter().flatten().find(|own| own["id"] == grant.id.as_str());
        let own = own.expect("the grant is in the file");
        if let Some(to) = own["to"].as_str().filter(|to| !to.contains("${")) {
            let port = format!(":{}", destination.scheme().default_port());
            assert_eq!(to.strip_suffix(&port).unwrap_or(to), origin);
        }
        assert!(texts(&own["methods"]).any(|granted| granted == self.method));
        assert!(texts(&own["paths"]).any(|pattern| is_below(pattern, destination.path())), "{destination}");
        if ["auth", "slots", "captures"].iter().any(|key| own.get(key).is_some_and(|value| !is_empty(value))) {
            assert!(!origin.contains('*'), "secrets for a wildcard: {origin}");
            assert!(origin.starts_with("https://") || own["plain_http"] == true, "secrets over plain http: {origin}");
        }
        match &self.needs {
            None => assert_eq!(written["trust_undeclared"], true),
            Some(needs) => {
                assert!(needs.http.iter().any(|need| {
                    need.paths.iter().any(|pattern| is_below(&pattern.to_string(), destination.path()))
                }))
            }
        }
    }

    fn check_denied(&self, denial: &Denial, mut written: Value) {
        let secret = "hunter2";
        if self.destination.query().is_some_and(|query| query.contains(secret)) {
            let elsewhere = self.destination.to_string().contains(secret) || written.to_string().contains(secret);
            assert!(elsewhere || self.method.contains(secret) || !denial.message.contains(secret), "{denial:?}");
        }
        let hint = denial.hint.as_deref().and_then(|hint| hint.split_once("add to \"http\" of the policy: "));
        let Some((_, grant)) = hint else { return };
        let grant: Value = serde_json::from_str(grant).expect("a suggested grant is JSON");
        assert_eq!(grant["to"], Value::from(self.destination.origin()));
        assert_eq!(grant["methods"], json!([self.method]));
        let known = ["id", "to", "methods", "paths", "operations", "addresses", "tls", "plain_http", "auth", "slots"];
        assert!(
            grant.as_object().is_some_and(|fields| fields.keys().all(|key| known.contains(&key.as_str()))),
            "the suggested grant has more keys: {grant}"
        );
        match written.get_mut("http").and_then(Value::as_array_mut) {
            Some(grants) => grants.push(grant),
            None => written["http"] = json!([grant]),
        }
        let policy = self.resolve(&written).expect("a suggested grant keeps the policy valid");
        let verdict = policy.judge(self.destination, self.method, &self.message);
        assert!(
            matches!(verdict, Verdict::Allowed { .. }),
            "denied although the suggested grant was added: {verdict:?}"
        );
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn is_origin(granted: &str, asked: &str) -> bool {
    match granted.split_once("://*.") {
        None => granted == asked,
        Some((scheme, suffix)) => {
            let host = asked.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")).unwrap_or_default();
            host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == suffix)
        }
    }
}

/// Returns true if a pattern of the policy matches a path.
pub(crate) fn is_below(pattern: &str, path: &str) -> bool {
    let (fixed, below) = match pattern.strip_suffix("/**") {
        Some(fixed) => (fixed, true),
        None => (pattern, false),
    };
    let (fixed, path): (Vec<&str>, Vec<&str>) = (fixed.split('/').collect(), path.split('/').collect());
    let long_enough = path.len() == fixed.len() || (below && path.len() > fixed.len());
    long_enough && fixed.iter().zip(&path).all(|(own, given)| own == given || (*own == "*" && !given.is_empty()))
}
