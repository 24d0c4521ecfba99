//! Scripts for the guest `probe`, and the outcomes that it returns.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// Returns a cloud ID that makes the probe run a script.
pub fn cid(operations: &Value) -> String {
    format!("probe:{}", STANDARD.encode(operations.to_string()))
}

/// Decodes the outcomes in a cloud ID that the probe returned.
#[track_caller]
pub fn outcomes(cid: &Value) -> Vec<Value> {
    let decoded = cid
        .as_str()
        .and_then(|cid| cid.strip_prefix("probe:"))
        .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    decoded.unwrap_or_else(|| panic!("{cid} holds no outcomes"))
}

/// Parses the outcomes in an error message. The probe returns them there from
/// methods whose result cannot hold them.
#[track_caller]
pub fn outcomes_in(message: &str) -> Vec<Value> {
    let found = message.split_once("probe outcomes: ").and_then(|(_, outcomes)| {
        // The runtime may append a sentence.
        serde_json::Deserializer::from_str(outcomes).into_iter().next()?.ok()
    });
    found.unwrap_or_else(|| panic!("the message holds no outcomes: {message}"))
}
