//! A response, and the contract that the Director and the CLI expect every response
//! to follow.

use crate::process::Finished;
use serde_json::Value;

pub const CPI_ERROR: &str = "Bosh::Clouds::CpiError";
pub const CLOUD_ERROR: &str = "Bosh::Clouds::CloudError";
pub const NOT_IMPLEMENTED: &str = "Bosh::Clouds::NotImplemented";
pub const NOT_SUPPORTED: &str = "Bosh::Clouds::NotSupported";
pub const STEMCELL_NOT_FOUND: &str = "Bosh::Clouds::StemcellNotFound";

/// The error types that both clients know. Only the CLI knows `StemcellNotFound`.
const KNOWN: [&str; 10] = [
    CPI_ERROR,
    CLOUD_ERROR,
    NOT_IMPLEMENTED,
    NOT_SUPPORTED,
    "Bosh::Clouds::VMNotFound",
    "Bosh::Clouds::NetworkNotFound",
    "Bosh::Clouds::NoDiskSpace",
    "Bosh::Clouds::DiskNotAttached",
    "Bosh::Clouds::DiskNotFound",
    "Bosh::Clouds::VMCreationFailed",
];

/// A part of every secret in a job's files. No output may contain it.
pub const CANARY: &str = "cAnArY7secret";

/// The message of a call in which the host panicked. No test may cause it.
const PANICKED: &str = "a bug in wasm-cpi ended the call";

/// Ruby's JSON parser rejects deeper nesting.
const MAX_DEPTH: usize = 100;

/// A guest's 2,000 lines and 512 KiB, plus some lines of the runtime.
const MAX_STDERR: usize = 1 << 20;

pub struct Response {
    pub json: Value,
    pub stderr: String,
}

impl Response {
    /// Checks the contract and panics with the whole output if it is broken.
    pub(crate) fn parse(finished: Finished, cli_deletes_stemcell: bool) -> Response {
        let stdout = String::from_utf8_lossy(&finished.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        let cut: String = stdout.chars().take(2000).collect();
        let context = format!("stdout: {cut}\nstderr: {stderr}\nstatus: {}", finished.status);
        assert!(
            finished.stdin_written.is_ok(),
            "stdin was not read to its end: {:?}\n{context}",
            finished.stdin_written
        );
        assert!(finished.status.success(), "the exit code is not 0, which the CLI treats as a failure\n{context}");
        assert!(std::str::from_utf8(&finished.stdout).is_ok(), "stdout is not UTF-8\n{context}");
        assert!(std::str::from_utf8(&finished.stderr).is_ok(), "stderr is not UTF-8\n{context}");
        let json: Value = serde_json::from_slice(&finished.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON document: {error}\n{context}"));
        check_shape(&json, cli_deletes_stemcell, &context);
        assert!(!stdout.contains(PANICKED), "the host panicked\n{context}");
        assert!(depth(&json) <= MAX_DEPTH, "the JSON is nested too deeply for Ruby\n{context}");
        assert!(!stdout.contains(CANARY) && !stderr.contains(CANARY), "a secret is in the output\n{context}");
        assert!(stderr.len() <= MAX_STDERR, "{} bytes on stderr", stderr.len());
        let plain = |c: char| c == '\n' || !(c.is_control() || is_invisible(c));
        assert!(stderr.chars().all(plain), "control or invisible characters on stderr\n{context}");
        assert!(stderr.is_empty() || stderr.ends_with('\n'), "the last line on stderr has no line feed\n{context}");
        Response { json, stderr }
    }

    /// Returns the result of a call that must have succeeded.
    #[track_caller]
    pub fn result(&self) -> &Value {
        assert!(self.json["error"].is_null(), "{}\nstderr: {}", self.json, self.stderr);
        &self.json["result"]
    }

    /// Returns the error of a call that must have failed.
    #[track_caller]
    pub fn error(&self) -> &Value {
        assert!(self.json["error"].is_object(), "the call succeeded: {}\nstderr: {}", self.json, self.stderr);
        &self.json["error"]
    }

    #[track_caller]
    pub fn message(&self) -> &str {
        self.error()["message"].as_str().unwrap_or_default()
    }

    #[track_caller]
    pub fn error_type(&self) -> &str {
        self.error()["type"].as_str().unwrap_or_default()
    }

    pub fn log(&self) -> &str {
        self.json["log"].as_str().unwrap_or_default()
    }

    /// Asserts that the call failed with this type and a message that contains all of
    /// these texts.
    #[track_caller]
    pub fn fails(&self, error_type: &str, texts: &[&str]) -> &Response {
        assert_eq!(self.error_type(), error_type, "{}\nstderr: {}", self.json, self.stderr);
        for part in texts {
            assert!(self.message().contains(part), "`{part}` is missing in: {}\nlog: {}", self.message(), self.log());
        }
        self
    }

    /// Asserts that the call failed at this limit and that the message says how to
    /// raise it.
    #[track_caller]
    pub fn reaches(&self, limit: &str) -> &Response {
        let (name, remedy) = (format!("`{limit}` ("), format!("raise `limits.{limit}` in the CPI's config"));
        self.fails(CLOUD_ERROR, &["limit: ", &name, &remedy])
    }
}

fn check_shape(json: &Value, cli_deletes_stemcell: bool, context: &str) {
    let keys: Vec<&str> = json.as_object().into_iter().flat_map(|object| object.keys().map(String::as_str)).collect();
    assert_eq!(keys, ["result", "error", "log"], "{context}");
    assert!(json["log"].is_string(), "`log` is not a string\n{context}");
    let error = &json["error"];
    if error.is_null() {
        return;
    }
    assert!(json["result"].is_null(), "there is a result and an error\n{context}");
    let error_type = error["type"].as_str().unwrap_or_default();
    let known = KNOWN.contains(&error_type) || (cli_deletes_stemcell && error_type == STEMCELL_NOT_FOUND);
    assert!(known, "this client does not know the error type `{error_type}`\n{context}");
    assert!(
        error["message"].as_str().is_some_and(|message| !message.is_empty()),
        "the error has no message\n{context}"
    );
    assert!(error["ok_to_retry"].is_boolean(), "the error has no ok_to_retry\n{context}");
}

/// Returns how deep arrays and objects are nested.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns true for characters that hide text or change its direction.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}
