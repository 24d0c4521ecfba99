//! The instance metadata service, version 2 only.

use super::clock;
use super::seed;
use super::state::{AccessKey, State};
use super::sts;
use crate::gateway::{Request, Response};
use serde_json::json;
use std::time::{Duration, SystemTime};

const TOKEN: &str = "X-aws-ec2-metadata-token";
const LIFETIME: &str = "X-aws-ec2-metadata-token-ttl-seconds";
const CREDENTIALS: &str = "/latest/meta-data/iam/security-credentials/";

/// How long the credentials of the instance's role are valid.
const KEY_LIFETIME: Duration = Duration::from_secs(6 * 3600);
/// New credentials are there this long before the old ones expire.
const RENEWAL: Duration = Duration::from_secs(300);

pub(super) fn answer(state: &mut State, request: &Request) -> Response {
    // A proxy is further away than the hop limit of one.
    if request.header("x-forwarded-for").is_some() {
        return plain(403, "Forbidden");
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("PUT", "/latest/api/token") => issue_token(state, request),
        ("GET", path) if has_token(state, request) => read(state, path),
        ("GET", _) => plain(401, "Unauthorized"),
        _ => plain(405, "Method Not Allowed"),
    }
}

fn plain(status: u16, text: &str) -> Response {
    Response { body: text.as_bytes().to_vec(), ..Response::new(status) }.with("Content-Type", "text/plain")
}

fn issue_token(state: &mut State, request: &Request) -> Response {
    let seconds = request.header(LIFETIME).and_then(|text| text.parse().ok());
    let Some(seconds) = seconds.filter(|seconds| (1..=21_600).contains(seconds)) else {
        return plain(400, "Bad Request");
    };
    let token = format!("AQAE{}{}==", state.ids.hex(), &state.ids.hex()[..20]);
    let expires = state.now() + Duration::from_secs(seconds);
    state.metadata_tokens.insert(token.clone(), expires);
    plain(200, &token).with(LIFETIME, &seconds.to_string())
}

fn has_token(state: &State, request: &Request) -> bool {
    let expires = request.header(TOKEN).and_then(|token| state.metadata_tokens.get(token));
    expires.is_some_and(|expires| *expires > state.now())
}

fn read(state: &mut State, path: &str) -> Response {
    let zone = seed::zones(&state.region).first().cloned().unwrap_or_default();
    match path {
        "/latest/meta-data/instance-id" => plain(200, seed::OWN_INSTANCE),
        "/latest/meta-data/placement/availability-zone" => plain(200, &zone),
        "/latest/meta-data/placement/region" => plain(200, &state.region),
        "/latest/dynamic/instance-identity/document" => Response::json(
            200,
            &json!({
                "accountId": seed::ACCOUNT, "instanceId": seed::OWN_INSTANCE, "region": state.region,
                "availabilityZone": zone, "version": "2017-09-30",
            }),
        ),
        _ => match path.strip_prefix(CREDENTIALS.trim_end_matches('/')) {
            Some("" | "/") => plain(200, seed::ROLE),
            Some(role) if role.strip_prefix('/') == Some(seed::ROLE) => credentials(state),
            _ => plain(404, "Not Found"),
        },
    }
}

fn credentials(state: &mut State) -> Response {
    let key = current_key(state);
    let body = json!({
        "Code": "Success", "LastUpdated": clock::format_seconds(state.now()), "Type": "AWS-HMAC",
        "AccessKeyId": key.id, "SecretAccessKey": key.secret, "Token": key.token,
        "Expiration": clock::format_seconds(key.expires.unwrap_or(SystemTime::UNIX_EPOCH)),
    });
    Response { body: format!("{body:#}").into_bytes(), ..Response::new(200) }.with("Content-Type", "text/plain")
}

/// Returns the credentials of the instance, which are new if the last ones expire soon.
fn current_key(state: &mut State) -> AccessKey {
    let (now, arn) = (state.now(), seed::instance_role_arn());
    let valid = |key: &&AccessKey| key.arn == arn && key.expires.is_some_and(|expires| expires > now + RENEWAL);
    if let Some(key) = state.keys.iter().rev().find(valid) {
        return key.clone();
    }
    sts::issue(state, seed::ACCOUNT, seed::ROLE, seed::OWN_INSTANCE, KEY_LIFETIME)
}
