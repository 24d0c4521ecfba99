//! The schema of the audit log, as SECURITY.md documents it. Every line that a test
//! reads is checked against it.

use crate::{Call, Job};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy)]
enum Type {
    Number,
    Flag,
    Text,
    Texts,
    /// `2026-11-16T13:01:01.120Z`
    Time,
    /// A string of this many hex digits.
    Hex(usize),
    Address,
    /// The code of a refusal: `header-override`
    Code,
    OneOf(&'static [&'static str]),
}
use Type::{Address, Code, Flag, Hex, Number, OneOf, Text, Texts, Time};

const KINDS: Type = OneOf(&["use", "denied", "leak", "cache", "call"]);
const WHO: Type = OneOf(&["request", "config", "policy", "limit", "guest", "iaas", "runtime"]);

/// Name, type, and whether every line of this kind has the field.
type Fields = &'static [(&'static str, Type, bool)];

const ALL: Fields = &[
    ("v", Number, true),
    ("ts", Time, true),
    ("call", Hex(16), true),
    ("kind", KINDS, true),
    ("method", Text, false),
    ("request_id", Text, false),
    ("director_uuid", Text, false),
    ("guest_name", Text, false),
    ("guest_version", Text, false),
    ("guest_sha256", Hex(64), false),
    ("cut", Flag, false),
];

const HTTP: Fields = &[
    ("capability", OneOf(&["http"]), true),
    ("operation", Text, false),
    ("target", Text, false),
    ("api_operation", Text, false),
    ("grant", Text, false),
    ("address", Address, false),
    ("refused_address", Address, false),
    ("status", Number, false),
    ("reason", Text, false),
    ("error", Text, false),
    ("code", Code, false),
    ("secret", Text, false),
    ("seals", Texts, false),
    ("sent", Flag, true),
    ("blocks", Number, false),
    ("blocks_skipped", Number, false),
    ("blocks_repeated", Number, false),
    ("sent_bytes", Number, true),
    ("received_bytes", Number, true),
    ("ms", Number, true),
];

const LOGIN: Fields = &[
    ("capability", OneOf(&["login"]), true),
    ("operation", Text, true),
    ("target", Text, true),
    ("login", Text, true),
    ("address", Address, false),
    ("refused_address", Address, false),
    ("status", Number, false),
    ("reason", Text, false),
    ("error", Text, false),
    ("code", Code, false),
    ("sent", Flag, true),
    ("sent_bytes", Number, true),
    ("received_bytes", Number, true),
    ("ms", Number, true),
];

const CREDENTIALS: Fields = &[
    ("capability", OneOf(&["credentials"]), true),
    ("operation", Text, true),
    ("target", Text, true),
    ("credentials", Text, true),
    ("address", Address, false),
    ("refused_address", Address, false),
    ("status", Number, false),
    ("reason", Text, false),
    ("error", Text, false),
    ("code", Code, false),
    ("sent", Flag, true),
    ("sent_bytes", Number, true),
    ("received_bytes", Number, true),
    ("ms", Number, true),
];

const HOST: Fields = &[
    ("capability", OneOf(&["session", "agent", "registry", "image"]), true),
    ("operation", Text, true),
    ("target", Text, false),
    ("login", Text, false),
    ("reason", Text, false),
    ("error", Text, false),
    ("code", Code, false),
    ("bytes", Number, true),
    ("ms", Number, true),
];

const RESULT: Fields = &[
    ("capability", OneOf(&["result"]), true),
    ("reason", OneOf(&["leak"]), true),
    ("code", OneOf(&["result-withheld"]), true),
    ("secret", Text, true),
];

const CACHE: Fields = &[
    ("event", OneOf(&["unusable", "doubted", "compiling", "not-kept", "not-stamped"]), true),
    ("why", Text, true),
    ("code", Code, false),
];

const CALL: Fields = &[
    ("outcome", OneOf(&["ok", "error", "undelivered"]), true),
    ("created", Text, false),
    ("undo", OneOf(&["deleted", "failed", "kept"]), false),
    ("error", Text, false),
    ("who", WHO, false),
    ("code", Code, false),
    ("wall_ms", Number, true),
    ("cpu_ms", Number, false),
    ("memory_bytes", Number, false),
    ("requests", Number, false),
    ("sent_bytes", Number, false),
    ("received_bytes", Number, false),
    ("host_calls", Number, false),
    ("config_calls", Number, false),
    ("log_calls", Number, false),
    ("clock_calls", Number, false),
    ("random_calls", Number, false),
    ("hardening", Text, false),
    ("dropped", Number, false),
];

/// Returns the names of all fields, some more than once.
pub fn names() -> impl Iterator<Item = &'static str> {
    [ALL, HTTP, LOGIN, HOST, RESULT, CACHE, CALL].into_iter().flatten().map(|(name, ..)| *name)
}

/// The maximum length of a line in bytes, with its line feed.
const LINE_MAX: usize = 4096;

/// Configures the job to write an audit log, `audit.log` in its directory.
pub fn audited(job: Job) -> Job {
    job.configure(|config| config["audit"] = json!({"path": "../audit.log"}))
}

/// Returns a probe operation that uses a capability `count` times without any
/// network traffic. Works in calls without a registry.
pub fn uses(target: &str, count: usize) -> Value {
    json!({"op": "agent.deleted", "key": target, "repeat": count})
}

/// Returns a call that writes `count` audit lines and the line of the call itself.
pub fn call_with_uses<'a>(job: &'a Job, target: &str, count: usize) -> Call<'a> {
    job.script(json!([uses(target, count)])).stemcell_api_version(2)
}

pub fn path(job: &Job) -> PathBuf {
    job.path("audit.log")
}

/// Returns all lines so far.
#[track_caller]
pub fn lines(job: &Job) -> Vec<Value> {
    lines_of(&path(job))
}

/// Returns the lines of one kind.
#[track_caller]
pub fn of_kind(job: &Job, kind: &str) -> Vec<Value> {
    lines(job).into_iter().filter(|line| line["kind"] == kind).collect()
}

/// Returns the lines about one capability.
#[track_caller]
pub fn about(job: &Job, capability: &str) -> Vec<Value> {
    lines(job).into_iter().filter(|line| line["capability"] == capability).collect()
}

/// Returns the last line, which must be the line of a call.
#[track_caller]
pub fn last_call(job: &Job) -> Value {
    let last = lines(job).pop().unwrap_or_else(|| panic!("the audit log is empty"));
    assert_eq!(last["kind"], "call", "{last}");
    last
}

#[track_caller]
pub fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text.is_empty() || text.ends_with('\n'), "the last line has no line feed: {text:?}");
    text.lines().map(check_line).collect()
}

/// Returns the complete lines of a log whose writer was killed or ran out of disk
/// space. At most one line may be incomplete.
#[track_caller]
pub fn whole_lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let whole = |line: &&str| serde_json::from_str::<Value>(line).is_ok();
    assert!(text.lines().filter(|line| !whole(line)).count() <= 1, "{text}");
    text.lines().filter(whole).map(check_line).collect()
}

/// Parses one line and panics if it does not match the schema.
#[track_caller]
pub fn check_line(line: &str) -> Value {
    assert!(line.len() < LINE_MAX, "{} bytes: {line}", line.len());
    assert!(!line.contains(crate::response::CANARY), "a secret is in the audit log: {line}");
    let plain = |c: char| !(c.is_control() || crate::response::is_invisible(c));
    assert!(line.chars().all(plain), "control or invisible characters: {line:?}");
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let fields = value.as_object().unwrap_or_else(|| panic!("not a JSON object: {line}"));
    let of_kind = match (value["kind"].as_str(), value["capability"].as_str()) {
        (Some("cache"), _) => CACHE,
        (Some("call"), _) => CALL,
        (_, Some("http")) => HTTP,
        (_, Some("login")) => LOGIN,
        (_, Some("credentials")) => CREDENTIALS,
        (_, Some("result")) => RESULT,
        _ => HOST,
    };
    let known = || ALL.iter().chain(of_kind);
    for (name, value) in fields {
        let kind = known().find(|(known, ..)| known == name).map(|(_, kind, _)| kind);
        let kind = kind.unwrap_or_else(|| panic!("`{name}` is not in the schema: {line}"));
        assert!(kind.accepts(value), "`{name}` has the wrong type: {line}");
    }
    for (name, ..) in known().filter(|(_, _, required)| *required) {
        assert!(fields.contains_key(*name), "`{name}` is missing: {line}");
    }
    let has = |name: &str| fields.contains_key(name);
    match value["kind"].as_str() {
        Some("denied") => assert!(has("reason") && !has("status") && !has("error"), "{line}"),
        Some("leak") => assert_eq!(value["reason"], "leak", "{line}"),
        Some("use") => assert!(!has("reason") && (!has("status") || !has("error")), "{line}"),
        Some("call") => {
            let expected = if value["outcome"] == "undelivered" { has("error") } else { value["outcome"] == "error" };
            assert_eq!((has("error"), has("who")), (expected, has("error")), "{line}");
            assert!(!has("undo") || (has("created") && value["outcome"] == "undelivered"), "{line}");
        }
        _ => {}
    }
    value
}

impl Type {
    fn accepts(self, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            Number => value.is_u64(),
            Flag => value.is_boolean(),
            Text => text.is_some_and(|text| !text.is_empty()),
            Texts => value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string)),
            Hex(digits) => text.is_some_and(|text| text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())),
            Code => text.is_some_and(|text| {
                !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            }),
            Address => text.is_some_and(|text| text.parse::<IpAddr>().is_ok()),
            OneOf(values) => text.is_some_and(|text| values.contains(&text)),
            Time => text.is_some_and(|text| {
                let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
                form == "0000-00-00T00:00:00.000Z"
            }),
        }
    }
}
