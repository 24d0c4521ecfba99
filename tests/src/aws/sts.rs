//! STS: assumes roles.

use super::clock;
use super::ec2::Call;
use super::error::Error;
use super::parameters::{number, only, required, text};
use super::seed;
use super::state::{AccessKey, State};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

const DEFAULT_DURATION: i64 = 3600;

/// Runs an operation; `key` signed the request.
pub(super) fn answer(state: &mut State, key: &AccessKey, call: &Call<'_>) -> Result<Value, Error> {
    match call.operation {
        "AssumeRole" => assume_role(state, key, call),
        "GetCallerIdentity" => Ok(json!({"UserId": key.user, "Account": key.account, "Arn": key.arn})),
        other => Err(Error::new("InvalidAction", format!("Could not find operation {other}"))),
    }
}

fn assume_role(state: &mut State, key: &AccessKey, call: &Call<'_>) -> Result<Value, Error> {
    let given = call.parameters;
    only(given, &["RoleArn", "RoleSessionName", "DurationSeconds", "ExternalId"])?;
    let (role, session) = (required(given, "RoleArn")?, required(given, "RoleSessionName")?);
    let usual = |letter: char| letter.is_ascii_alphanumeric() || "_+=,.@-".contains(letter);
    if !(2..=64).contains(&session.len()) || !session.chars().all(usual) {
        let message = format!("The value '{session}' at 'roleSessionName' has an invalid length or characters.");
        return Err(Error::new("ValidationError", message));
    }
    let seconds = number(given, "DurationSeconds").unwrap_or(DEFAULT_DURATION);
    if !(900..=43_200).contains(&seconds) {
        let message = format!("The value '{seconds}' at 'durationSeconds' must be between 900 and 43200.");
        return Err(Error::new("ValidationError", message));
    }
    // A role that assumes a role gets at most one hour.
    if key.token.is_some() && seconds > DEFAULT_DURATION {
        let message =
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining";
        return Err(Error::new("ValidationError", message));
    }
    let name = role_name(&key.account, role, text(given, "ExternalId")).ok_or_else(|| {
        let message = format!("User: {} is not authorized to perform: sts:AssumeRole on resource: {role}", key.arn);
        Error::with_status(403, "AccessDenied", message)
    })?;
    let seconds = u64::try_from(seconds).unwrap_or_default();
    let new = issue(state, &key.account, name, session, Duration::from_secs(seconds));
    Ok(json!({
        "Credentials": {
            "AccessKeyId": new.id, "SecretAccessKey": new.secret, "SessionToken": new.token,
            "Expiration": clock::format_seconds(new.expires.unwrap_or(SystemTime::UNIX_EPOCH)),
        },
        "AssumedRoleUser": {"AssumedRoleId": new.user, "Arn": new.arn},
    }))
}

/// Returns the name of a role that this account can assume.
fn role_name(account: &str, role: &str, external_id: Option<&str>) -> Option<&'static str> {
    let roles = [(seed::ROLE, None), (seed::EXTERNAL_ROLE, Some(seed::EXTERNAL_ID))];
    let found = roles.into_iter().find(|(name, _)| role == seed::role_arn(account, name));
    let (name, wanted) = found?;
    (wanted.is_none() || wanted == external_id).then_some(name)
}

/// Issues temporary credentials of a role. A lifetime that a test has set wins.
pub(super) fn issue(state: &mut State, account: &str, role: &str, session: &str, lifetime: Duration) -> AccessKey {
    let lifetime = state.key_lifetime.map_or(lifetime, Duration::from_secs);
    let user = format!("AROA{}", state.ids.hex()[..16].to_uppercase());
    let key = AccessKey {
        id: format!("ASIA{}", state.ids.hex()[..16].to_uppercase()),
        secret: format!("{}{}", state.ids.hex(), &state.ids.hex()[..8]),
        token: Some(format!("{}/{}+{}==", state.ids.hex(), state.ids.hex(), state.ids.hex())),
        expires: Some(state.now() + lifetime),
        account: account.to_owned(),
        arn: format!("arn:aws:sts::{account}:assumed-role/{role}/{session}"),
        user: format!("{user}:{session}"),
    };
    state.keys.push(key.clone());
    key
}
