//! The secrets that a policy sends: which of them are credentials, and whether each can be written
//! where the policy sends it.
//!
//! Both are decided before the guest runs. If a request were refused because of a character in
//! a secret, the guest would learn something about that secret.

use crate::failure::Failure;
use serde_json::Value;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::place::{Place, PlaceError};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{
    Auth, CredentialSource, Credentials, Login, LoginBody, Policy, ResolvedText, is_credential_name,
};

/// Returns the credentials that grants and logins send, and the keys that sign requests, with the names of their
/// properties.
pub fn credentials(policy: &Policy) -> Vec<(String, Secret)> {
    let of_grants = policy.http.iter().filter_map(|grant| match &grant.auth {
        Some(Auth::Basic { password, .. }) => Some(named(password)),
        Some(Auth::Bearer(value) | Auth::Header { value, .. }) => Some(named(value)),
        Some(Auth::Login(_) | Auth::SigV4(_)) | None => None,
    });
    let of_logins = policy.logins.values().flat_map(of_login);
    of_grants.chain(of_logins).chain(policy.credentials.values().flat_map(static_keys).map(named)).collect()
}

fn named(value: &ResolvedText) -> (String, Secret) {
    (value.name.clone(), value.secret.clone())
}

/// Returns the parts of keys that properties hold.
fn static_keys(credentials: &Credentials) -> Vec<&ResolvedText> {
    match &credentials.source {
        CredentialSource::Static { access_key_id, secret_access_key, session_token } => {
            [access_key_id, secret_access_key].into_iter().chain(session_token).collect()
        }
        CredentialSource::Metadata { .. } | CredentialSource::AssumedRole(_) => Vec::new(),
    }
}

/// Returns the headers of a login's request, and the fields of its body whose names say that they
/// are credentials. Other fields are names of users and projects, which answers repeat.
fn of_login(login: &Login) -> Vec<(String, Secret)> {
    let mut found: Vec<(String, Secret)> = login.headers.iter().map(|(_, value)| named(value)).collect();
    match &login.body {
        LoginBody::None => {}
        LoginBody::Form(fields) => {
            found.extend(fields.iter().filter(|(name, _)| is_credential_name(name)).map(|(_, value)| named(value)));
        }
        LoginBody::Json(text) => {
            let body = serde_json::from_str(text.reveal()).unwrap_or_default();
            collect(&body, &format!("login {}", login.name), &mut found);
        }
    }
    found.retain(|(name, _)| !name.is_empty());
    found
}

fn collect(value: &Value, name: &str, found: &mut Vec<(String, Secret)>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::String(text) if is_credential_name(key) => {
                found.push((format!("{name}.{key}"), Secret::new(text.as_str())));
            }
            value => collect(value, &format!("{name}.{key}"), found),
        }
    }
    value.as_array().into_iter().flatten().for_each(|value| collect(value, name, found));
}

/// Rejects a secret that cannot be written where the policy sends it. `sealed` holds the properties
/// that the guest gets as seals.
pub fn check_sendable(policy: &Policy, sealed: &[(String, Secret)]) -> Result<(), Failure> {
    for grant in &policy.http {
        let at = format!("`auth` of the grant `{}`", grant.id);
        match &grant.auth {
            Some(Auth::Bearer(value)) => check_header_value("authorization", value, &at)?,
            Some(Auth::Header { name, value }) => check_header_value(name, value, &at)?,
            Some(Auth::Basic { .. } | Auth::Login(_) | Auth::SigV4(_)) | None => {}
        }
        for slot in &grant.slots {
            for (name, secret) in sealed.iter().filter(|(name, _)| slot.takes.contains(name)) {
                let at = format!("the slot `{}` of the grant `{}`", slot.place, grant.id);
                sendable(name, slot.place.check_value(secret.reveal()), &at)?;
            }
        }
    }
    for credentials in policy.credentials.values() {
        let at = format!("the signatures of the credentials `{}`", credentials.name);
        // The secret key is not sent, but one that could not be is a mistake as well, such as a line end in it.
        let parts = static_keys(credentials);
        parts.into_iter().try_for_each(|part| check_header_value("authorization", part, &at))?;
    }
    for login in policy.logins.values() {
        let at = format!("`headers` of the login `{}`", login.name);
        login.headers.iter().try_for_each(|(name, value)| check_header_value(name, value, &at))?;
    }
    Ok(())
}

fn check_header_value(header: &str, value: &ResolvedText, at: &str) -> Result<(), Failure> {
    sendable(&value.name, Place::Header(header.to_owned()).check_value(value.secret.reveal()), at)
}

/// Turns the error of a place, which cannot hold the value of the property `name`, into a failure of the
/// config.
fn sendable(name: &str, result: Result<(), PlaceError>, at: &str) -> Result<(), Failure> {
    Check::SecretSendable.reject(result.err(), |error| {
        let fault = error.fault;
        // A text of the policy without a property has no name.
        let what = if name.is_empty() { "the policy's text".to_owned() } else { format!("the property `{name}`") };
        Failure::config(format!("{what} cannot be sent in {at}: {fault}; correct the property or the policy"))
    })
}

/// Returns a sentence about what credentials are and whether later calls use them.
pub fn describe_credentials(credentials: &Credentials, keeps_tokens: bool) -> String {
    let kept = match keeps_tokens {
        true => "temporary, kept for later calls for an hour at most",
        false => "temporary, asked for in each call",
    };
    match &credentials.source {
        CredentialSource::Static { session_token, .. } => {
            let token = if session_token.is_some() { "with" } else { "without" };
            let properties = credentials.properties.join(", ");
            format!("keys from the properties {properties}, {token} a session token, not kept")
        }
        CredentialSource::Metadata { ipv6 } => {
            let address = if *ipv6 { "IPv6" } else { "IPv4" };
            format!("keys of this machine's role, from the metadata service at its {address} address; {kept}")
        }
        CredentialSource::AssumedRole(role) => {
            let (with, region) = (&role.with, &role.region);
            format!("keys of a role, which the credentials `{with}` assume at {} in {region}; {kept}", role.origin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use wasm_cpi_policy::{PolicyFile, Properties};

    fn policy(policy: &Value, properties: &Value) -> Policy {
        let file = PolicyFile::parse(&policy.to_string()).unwrap();
        let properties = Properties::merge(properties.as_object().cloned().unwrap_or_default(), Map::new());
        Policy::resolve(&file, &properties, None, &[], false).unwrap()
    }

    #[test]
    fn auth_and_login_secrets_are_credentials_and_names_of_users_are_not() {
        let properties = json!({"u": "a-user-of-the-job", "p": "pw", "b": "bearer", "h": "header"});
        let policy = policy(
            &json!({
                "version": 1,
                "http": [
                    {"id": "a", "to": "https://a.test", "methods": ["GET"], "paths": ["/**"], "auth": {"basic": {"user": "${u}", "password": "${p}"}}},
                    {"id": "b", "to": "https://b.test", "methods": ["GET"], "paths": ["/**"], "auth": {"bearer": "${b}"}},
                    {"id": "c", "to": "https://c.test", "methods": ["GET"], "paths": ["/**"], "auth": {"login": "main"}}
                ],
                "logins": {"main": {
                    "to": "https://id.test", "path": "/tokens", "headers": {"X-Key": "${h}"}, "token": "json:/t",
                    "body": {"password": {"user": {"name": "${u}", "password": "${p}"}}}, "send": {"header": "X-T"}
                }}
            }),
            &properties,
        );
        let mut found = credentials(&policy);
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let found: Vec<(&str, &str)> = found.iter().map(|(name, secret)| (name.as_str(), secret.reveal())).collect();
        assert_eq!(found, [("b", "bearer"), ("h", "header"), ("login main.password.user.password", "pw"), ("p", "pw")]);
    }

    #[test]
    fn keys_that_sign_are_credentials_must_be_sendable_and_are_described_without_values() {
        let signed = |secret: &str, token: &str| {
            let sigv4 = json!({"service": "compute", "region": "eu-central-1", "credentials": "role"});
            policy(
                &json!({"version": 1,
                    "credentials": {
                        "main": {"static": {"access_key_id": "${id}", "secret_access_key": "${key}", "session_token": "${token}"}},
                        "role": {"assume_role": {"role": "arn:cloud:iam::123456789012:role/cpi", "with": "main",
                            "to": "https://tokens.test", "region": "eu-central-1"}}},
                    "http": [{"id": "a", "to": "https://a.test", "methods": ["GET"], "paths": ["/**"], "auth": {"sigv4": sigv4}}]}),
                &json!({"id": "AKID", "key": secret, "token": token}),
            )
        };
        let found = |policy: &Policy| {
            let mut names: Vec<String> = credentials(policy).into_iter().map(|(name, _)| name).collect();
            names.sort();
            names.join(" ")
        };
        let (with, without) = (signed("se/cret+", "a-token"), signed("se/cret+", ""));
        assert_eq!((found(&with).as_str(), found(&without).as_str()), ("id key token", "id key"));
        assert!(check_sendable(&with, &[]).is_ok());
        for policy in [signed("two\nlines", ""), signed("x", "t\u{e4}")] {
            let message = check_sendable(&policy, &[]).unwrap_err().to_string();
            assert!(message.contains("signatures of the credentials `main`"), "{message}");
        }
        let describe = |name: &str, keeps| describe_credentials(&with.credentials[name], keeps);
        assert_eq!(describe("main", true), "keys from the properties id, key, token, with a session token, not kept");
        let role =
            "keys of a role, which the credentials `main` assume at https://tokens.test in eu-central-1; temporary, ";
        assert_eq!(describe("role", true), format!("{role}kept for later calls for an hour at most"));
        assert_eq!(describe("role", false), format!("{role}asked for in each call"));
    }

    #[test]
    fn a_secret_that_does_not_fit_its_slot_is_a_mistake_of_the_configuration() {
        let grant = |place: &str| {
            policy(
                &json!({"version": 1, "http": [{
                    "id": "a", "to": "https://a.test", "methods": ["POST"], "paths": ["/v1"],
                    "slots": [{"method": "POST", "path": "/v1", "place": place, "takes": ["p"]}]
                }]}),
                &json!({"p": "x"}),
            )
        };
        for (place, value, fits) in [
            ("header:x-key", "plain", true),
            ("header:x-key", "two\r\nlines", false),
            ("header:x-key", "p\u{e4}ss", false),
            ("header:x-key", " padded-value", false),
            ("xml:/r/Key", "p\u{e4}ss\nword", true),
            ("xml:/r/Key", "bell\u{7}", false),
            ("json:/key", "bell\u{7}\r\n--x", true),
            ("part:key", "bell\u{7}\r\n--x", true),
        ] {
            let checked = check_sendable(&grant(place), &[("p".to_owned(), Secret::new(value))]);
            assert_eq!(checked.is_ok(), fits, "{place} {value:?}");
            if let Err(failure) = checked {
                let message = failure.to_string();
                assert!(message.contains("`p`") && message.contains(place) && !message.contains(value), "{message}");
            }
            assert!(check_sendable(&grant(place), &[("q".to_owned(), Secret::new(value))]).is_ok());
        }
    }
}
