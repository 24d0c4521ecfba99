//! Tests of the single steps, and of their helpers.

mod credentials;
mod hidden_places;
mod settings;

use super::agent_settings::{MARKER, PLACEHOLDER, clean_json};
use super::*;
use serde_json::{Value, json};
use std::sync::Arc;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::{Policy, PolicyFile, Properties};

/// A policy with one grant, which the other keys are laid over.
fn policy(more: Value) -> Policy {
    let mut grant =
        json!({"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "HEAD", "POST"], "paths": ["/**"]});
    grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let file = json!({"version": 1, "trust_undeclared": true, "http": [grant]}).to_string();
    let properties = json!({"password": "pass"}).as_object().unwrap().clone();
    let properties = Properties::merge(properties, serde_json::Map::new());
    Policy::resolve(&PolicyFile::parse(&file).unwrap(), &properties, None, &[], false).unwrap()
}

struct Cleaned {
    result: Result<Option<String>, WithheldResponse>,
    headers: Vec<(String, String)>,
    body: String,
}

/// Cleans a response of the policy's only grant to `POST /vms` with these secrets, or to a GET.
fn cleaned(policy: &Policy, secret_names: &[&str], status: u16, headers: &[(&str, &str)], body: &str) -> Cleaned {
    cleaned_while(&SearchDeadline::unlimited(), policy, secret_names, status, headers, body)
}

/// Cleans a response in a call that may end.
fn cleaned_while(
    deadline: &SearchDeadline<'_>,
    policy: &Policy,
    secret_names: &[&str],
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> Cleaned {
    let grant = Arc::clone(&policy.http[0]);
    let hidden = policy.hidden_places(&Destination::parse("https://api.iaas.test/vms", 2048).unwrap());
    let secret_names: Vec<String> = secret_names.iter().map(|name| (*name).to_owned()).collect();
    let mut headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut body = body.as_bytes().to_vec();
    let rules = Rules {
        grant: &grant,
        operation: None,
        hidden: &hidden,
        secret_names: &secret_names,
        layer: Layer::Job,
        deadline,
    };
    let method = if secret_names.is_empty() { "GET" } else { "POST" };
    let mut response = ResponseInScreening { method, path: "/vms", status, headers: &mut headers, body: &mut body };
    let result = places::remove_hidden(&rules, &mut response)
        .and_then(|hidden| agent_settings::replace_settings(&mut response, deadline).map(|()| hidden));
    Cleaned { result, headers, body: String::from_utf8(body).unwrap() }
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn slot(show: Value) -> Value {
    json!({"slots": [{"method": "POST", "path": "/vms", "place": "json:/user_data", "takes": ["password"], "show": show}]})
}
