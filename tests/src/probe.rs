//! Scripts for the guest `probe`, and the outcomes it answers.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// A cloud ID that makes the probe run a script.
pub fn cid(operations: &Value) -> String {
    format!("probe:{}", STANDARD.encode(operations.to_string()))
}

/// The outcomes in a cloud ID that the probe answered.
#[track_caller]
pub fn outcomes(cid: &Value) -> Vec<Value> {
    let decoded = cid
        .as_str()
        .and_then(|cid| cid.strip_prefix("probe:"))
        .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    decoded.unwrap_or_else(|| panic!("{cid} holds no outcomes"))
}

/// The outcomes in the message of an error, as the probe answers them where a
/// result has no room for them.
#[track_caller]
pub fn outcomes_in(message: &str) -> Vec<Value> {
    let found = message.split_once("probe outcomes: ").and_then(|(_, outcomes)| {
        // The runtime may have added a sentence behind it.
        serde_json::Deserializer::from_str(outcomes).into_iter().next()?.ok()
    });
    found.unwrap_or_else(|| panic!("no outcomes in: {message}"))
}
