//! A response, and what the Director and the CLI demand of every one.

use crate::process::Finished;
use serde_json::Value;

pub const CPI_ERROR: &str = "Bosh::Clouds::CpiError";
pub const CLOUD_ERROR: &str = "Bosh::Clouds::CloudError";
pub const NOT_IMPLEMENTED: &str = "Bosh::Clouds::NotImplemented";
pub const NOT_SUPPORTED: &str = "Bosh::Clouds::NotSupported";
pub const STEMCELL_NOT_FOUND: &str = "Bosh::Clouds::StemcellNotFound";

/// What both clients know by name. `StemcellNotFound` is the CLI's alone.
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

/// The part of every secret in a job's files: no output may hold it.
pub const CANARY: &str = "cAnArY7secret";

/// What a call says whose host panicked: nothing may bring that about.
const PANICKED: &str = "a bug in wasm-cpi ended the call";

/// Ruby's parser stops at 100.
const MAX_DEPTH: usize = 100;

/// A guest's 2,000 lines and 512 KiB, and some lines of the runtime's own.
const MAX_STDERR: usize = 1 << 20;

pub struct Response {
    pub json: Value,
    pub stderr: String,
}

impl Response {
    /// Checks the contract: panics with everything that was said if it is broken.
    pub(crate) fn checked(finished: Finished, cli_deletes_stemcell: bool) -> Response {
        let stdout = String::from_utf8_lossy(&finished.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        let cut: String = stdout.chars().take(2000).collect();
        let context = format!("stdout: {cut}\nstderr: {stderr}\nstatus: {}", finished.status);
        assert!(finished.fed.is_ok(), "stdin was not read to its end: {:?}\n{context}", finished.fed);
        assert!(finished.status.success(), "the CLI takes any other exit code for a failure\n{context}");
        assert!(std::str::from_utf8(&finished.stdout).is_ok(), "stdout is not UTF-8\n{context}");
        assert!(std::str::from_utf8(&finished.stderr).is_ok(), "stderr is not UTF-8\n{context}");
        let json: Value = serde_json::from_slice(&finished.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON document: {error}\n{context}"));
        check_shape(&json, cli_deletes_stemcell, &context);
        assert!(!stdout.contains(PANICKED), "the host panicked\n{context}");
        assert!(depth(&json) <= MAX_DEPTH, "too deep for Ruby\n{context}");
        assert!(!stdout.contains(CANARY) && !stderr.contains(CANARY), "a secret is in the output\n{context}");
        assert!(stderr.len() <= MAX_STDERR, "{} bytes on stderr", stderr.len());
        let plain = |c: char| c == '\n' || !(c.is_control() || is_invisible(c));
        assert!(stderr.chars().all(plain), "control or invisible characters on stderr\n{context}");
        assert!(stderr.is_empty() || stderr.ends_with('\n'), "a line without an end on stderr\n{context}");
        Response { json, stderr }
    }

    /// The result of a call that must have succeeded.
    #[track_caller]
    pub fn result(&self) -> &Value {
        assert!(self.json["error"].is_null(), "{}\nstderr: {}", self.json, self.stderr);
        &self.json["result"]
    }

    #[track_caller]
    pub fn error(&self) -> &Value {
        assert!(self.json["error"].is_object(), "succeeded: {}\nstderr: {}", self.json, self.stderr);
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

    /// Failed with this type, and says all of this.
    #[track_caller]
    pub fn fails(&self, error_type: &str, said: &[&str]) -> &Response {
        assert_eq!(self.error_type(), error_type, "{}\nstderr: {}", self.json, self.stderr);
        for part in said {
            assert!(self.message().contains(part), "no `{part}` in: {}\nlog: {}", self.message(), self.log());
        }
        self
    }

    /// Failed at this limit, which is named together with what to do.
    #[track_caller]
    pub fn reaches(&self, limit: &str) -> &Response {
        let (name, remedy) = (format!("`{limit}` ("), format!("raise `limits.{limit}` in the CPI's config"));
        self.fails(CLOUD_ERROR, &["limit: ", &name, &remedy])
    }
}

fn check_shape(json: &Value, cli_deletes_stemcell: bool, context: &str) {
    let keys: Vec<&str> = json.as_object().into_iter().flat_map(|object| object.keys().map(String::as_str)).collect();
    assert_eq!(keys, ["result", "error", "log"], "{context}");
    assert!(json["log"].is_string(), "log is no string\n{context}");
    let error = &json["error"];
    if error.is_null() {
        return;
    }
    assert!(json["result"].is_null(), "a result beside an error\n{context}");
    let error_type = error["type"].as_str().unwrap_or_default();
    let known = KNOWN.contains(&error_type) || (cli_deletes_stemcell && error_type == STEMCELL_NOT_FOUND);
    assert!(known, "`{error_type}` is no error type that this client knows\n{context}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "no message\n{context}");
    assert!(error["ok_to_retry"].is_boolean(), "no ok_to_retry\n{context}");
}

/// How deep arrays and objects are nested.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Characters that hide text or turn it around.
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
