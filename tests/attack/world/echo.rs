//! Servers that send back what they received, in many forms.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tests::servers::Answer;

/// The forms in which a server can send bytes back.
pub(crate) const FORMS: [&str; 14] = [
    "plain",
    "json",
    "field",
    "xml",
    "base64",
    "base64url",
    "hex",
    "percent",
    "swapped",
    "reversed",
    "spaced",
    "headers",
    "location",
    "settings",
];

/// Returns an answer that holds the bytes in this form.
pub(super) fn answer(status: u16, form: &str, bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let typed = |kind: &str, body: String| Answer::new(status, body).header("Content-Type", kind);
    let plain = |body: String| typed("text/plain", body);
    match form {
        "plain" => plain(text),
        "json" => Answer::json(status, &json!({"received": text})),
        // A JSON body stays JSON, so that places in it are found.
        "field" => {
            let body = text.split_once("\r\n\r\n").map_or(text.as_str(), |(_, body)| body);
            let body: Value = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
            Answer::json(status, &json!({"server": {"id": "vm-1", "metadata": body}}))
        }
        "xml" => {
            let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let escaped: String = escaped.chars().filter(|c| !c.is_control()).collect();
            typed("text/xml", format!("<r><received>{escaped}</received></r>"))
        }
        "base64" => plain(STANDARD.encode(bytes)),
        "base64url" => plain(URL_SAFE_NO_PAD.encode(bytes)),
        "hex" => plain(each_byte(bytes, "")),
        "percent" => plain(each_byte(bytes, "%")),
        "swapped" => plain(text.chars().map(swapped).collect()),
        "reversed" => plain(text.chars().rev().collect()),
        "spaced" => plain(text.chars().flat_map(|c| [c, ' ']).collect()),
        "headers" => {
            let lines = text.lines().filter(|line| !line.is_empty()).take(30).enumerate();
            lines.fold(Answer::new(status, "x"), |answer, (number, line)| {
                answer.header(&format!("X-Echo-{number}"), &printable(line))
            })
        }
        "location" => {
            let line: String = printable(&text).chars().take(4000).collect();
            Answer::new(status, "x").header("Location", &format!("/v1/{}", each_byte(line.as_bytes(), "%")))
        }
        "settings" => Answer::json(status, &json!({"Config": {"Cmd": ["run", text], "Env": [STANDARD.encode(bytes)]}})),
        other => panic!("`{other}` is not a form of an echo"),
    }
}

fn each_byte(bytes: &[u8], before: &str) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{before}{byte:02x}");
        text
    })
}

fn swapped(c: char) -> char {
    if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect()
}
