//! Tests of the policy as a whole; single parts are tested in their modules.

mod added_needs;
mod comparison;
mod credentials;
mod declared;
mod fields;
mod file;
mod generate;
mod judge;
mod mistakes;
mod mutated;
mod one_path;
mod operations;
mod oracle;
mod presets;
mod protections;
mod resolve;
mod responses;
mod schema;
mod unused_certificates;

use serde_json::{Map, Value, json};

use super::*;
use crate::destination::Destination;
use crate::place::Message;

const NOTHING: Message<'_> = Message { headers: &[], body: b"" };

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn file(value: &Value) -> PolicyFile {
    PolicyFile::parse(&value.to_string()).unwrap_or_else(|problems| panic!("{value}: {problems:#?}"))
}

fn needs(value: &Value) -> Needs {
    Needs::parse(value.to_string().as_bytes()).unwrap_or_else(|problems| panic!("{value}: {problems:#?}"))
}

/// Returns the needs of a guest that declares every request.
fn any_needs() -> Needs {
    needs(&json!({"version": 1, "logins": "*", "http": [
        {"id": "any", "to": "*", "methods": ["*"], "paths": ["/**"], "slots": "*", "operations": "*"}]}))
}

fn resolve(policy: &Value, job: &Value, context: &Value, needs: Option<&Needs>) -> Result<Policy, Vec<PolicyProblem>> {
    Policy::resolve(&file(policy), &Properties::merge(object(job), object(context)), needs, &[], false)
}

fn policy_of(grants: &Value, needs: Option<&Needs>) -> Policy {
    resolve(&json!({"version": 1, "http": grants}), &json!({}), &json!({}), needs).unwrap()
}

/// Returns `allowed by ID`, or the reason.
fn verdict(policy: &Policy, method: &str, url: &str) -> String {
    verdict_on(policy, method, url, &NOTHING).0
}

fn verdict_on(policy: &Policy, method: &str, url: &str, message: &Message<'_>) -> (String, String) {
    let destination = Destination::parse(url, 8192).unwrap_or_else(|invalid| panic!("{url}: {invalid}"));
    match policy.judge(&destination, method, message) {
        Verdict::Allowed { grant, .. } => (format!("allowed by {}", grant.id), String::new()),
        Verdict::Denied(Denial { reason, message, hint, .. }) => {
            (reason.to_string(), hint.map_or(message.clone(), |hint| format!("{message}; {hint}")))
        }
    }
}
