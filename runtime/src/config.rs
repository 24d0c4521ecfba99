//! The operator's file, `config/cpi.json`: read, checked as a whole, typed.
//!
//! Every problem is reported, not the first: an operator mends a file once.
//! Paths in it are relative to the file. Nothing here touches the network or the
//! guest.

use crate::agent::AgentConfig;
use crate::audit::AuditConfig;
use crate::component::prepared::Wanted;
use crate::component::signature::Signature;
use crate::failure::Failure;
use crate::hardening::Hardening;
use crate::holes::{self, Check};
use crate::limits::Limits;
use crate::log::{Format, Level};
use crate::net::http_trace::HttpTrace;
use crate::registry::RegistryConfig;
use crate::rpc::API_VERSION;
use crate::strict_json;
use crate::trust;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A larger file is no configuration.
const MAX_BYTES: u64 = 4 << 20;

const MAX_DEPTH: usize = 64;

pub struct Config {
    pub guest: GuestConfig,
    pub properties: Map<String, Value>,
    pub agent: AgentConfig,
    pub registry: Option<RegistryConfig>,
    pub policy: PathBuf,
    pub limits: Limits,
    pub log_level: Level,
    pub log_format: Format,
    /// Off if it is absent.
    pub audit: Option<AuditConfig>,
    pub http_trace: Option<HttpTrace>,
    pub cache: PathBuf,
    pub image_dirs: Vec<PathBuf>,
    pub allow_local: bool,
    pub hardening: Hardening,
    /// What `info` answers at most.
    pub api_version: u32,
    /// What is allowed but unwise, for `check`.
    pub warnings: Vec<String>,
}

pub struct GuestConfig {
    pub path: PathBuf,
    /// Lower-case hex.
    pub sha256: String,
    /// Who must have signed that digest, if anybody.
    pub signature: Option<Signature>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuestSection {
    path: PathBuf,
    sha256: String,
    signature: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogSection {
    #[serde(default = "default_level")]
    level: Level,
    #[serde(default = "default_format")]
    format: Format,
}

fn default_level() -> Level {
    Level::Info
}

fn default_format() -> Format {
    Format::Text
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DebugSection {
    #[serde(default)]
    cpi: DebugCpi,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DebugCpi {
    api_version: Option<u32>,
}

impl Config {
    /// What has to be prepared for it.
    pub fn wanted(&self) -> Wanted<'_> {
        Wanted { guest: &self.guest, cache: &self.cache, limits: &self.limits, hardening: self.hardening }
    }

    pub fn load(path: &Path) -> Result<Config, Failure> {
        let (text, warnings) = read(path)?;
        Config::parse(path, &text, warnings).map_err(|problems| several(path, &problems))
    }

    /// All problems of the text, each a sentence.
    pub fn parse(path: &Path, text: &str, warnings: Vec<String>) -> Result<Config, Vec<String>> {
        let fields = match strict_json::parse(text, MAX_DEPTH) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(vec!["the file must hold a JSON object".into()]),
            Err(error) => return Err(vec![format!("the file is not JSON: {error}")]),
        };
        let mut sections = Sections { fields, problems: Vec::new() };
        match sections.fields.remove("version") {
            Some(version) if version == 1 || !Check::UnknownVersion.on() => {}
            Some(_) => sections.problem("`version` must be 1"),
            None => sections.problem("`version` is missing; set \"version\": 1"),
        }
        let guest: Option<GuestSection> = sections.required("guest", "{\"path\": \"….wasm\", \"sha256\": \"…\"}");
        let properties: Map<String, Value> = sections.optional("properties").unwrap_or_default();
        let agent: AgentConfig = sections.optional("agent").unwrap_or_default();
        let mut registry: Option<RegistryConfig> = sections.optional("registry");
        let policy: PathBuf = sections.optional("policy").unwrap_or_else(|| "policy.json".into());
        let limits: Limits = sections.optional("limits").unwrap_or_default();
        let log: Option<LogSection> = sections.optional("log");
        let audit: Option<AuditConfig> = sections.optional("audit");
        let http_trace: Option<HttpTrace> = sections.optional("http_trace");
        let cache: PathBuf = sections.optional("cache").unwrap_or_else(|| "cache".into());
        let image_dirs: Vec<PathBuf> = sections.optional("image_dirs").unwrap_or_default();
        let allow_local: bool = sections.optional("allow_local").unwrap_or(false);
        let hardening: Hardening = sections.optional("hardening").unwrap_or_default();
        let debug: Option<DebugSection> = sections.optional("debug");
        sections.unknown();
        sections.problems.extend(limits.problems());
        sections.problems.extend(audit.iter().flat_map(AuditConfig::problems));
        let api_version = debug.and_then(|debug| debug.cpi.api_version).unwrap_or(API_VERSION);
        if !(1..=API_VERSION).contains(&api_version) {
            sections.problem(&format!("`debug.cpi.api_version` must be from 1 to {API_VERSION}"));
        }
        if let Some(guest) = &guest
            && !is_sha256(&guest.sha256)
        {
            sections
                .problem("`guest.sha256` must be 64 lower-case hex digits; `wasm-cpi inspect GUEST.wasm` prints them");
        }
        let mut advice = agent.warnings();
        advice.extend(registry.iter().flat_map(RegistryConfig::warnings));
        if allow_local {
            advice.push("`allow_local` lets grants reach this machine itself: for tests and local clouds only".into());
        }
        advice.extend(http_trace.map(HttpTrace::warning));
        if hardening == Hardening::Off {
            advice.push("`hardening` is `off`: only the engine stands between a guest and this machine".into());
        }
        let base = path.parent().unwrap_or(Path::new("."));
        let signature = guest.as_ref().and_then(|guest| guest.signature.as_ref()).and_then(|section| {
            Signature::parse(section, base).map_err(|problems| sections.problems.extend(problems)).ok()
        });
        if let Some(registry) = &mut registry {
            registry.resolve_paths(base);
        }
        match guest {
            Some(guest) if sections.problems.is_empty() => Ok(Config {
                guest: GuestConfig { path: base.join(guest.path), sha256: guest.sha256, signature },
                properties,
                agent,
                registry,
                policy: base.join(policy),
                limits: holes::lifted(limits),
                log_level: log.as_ref().map_or_else(default_level, |log| log.level),
                log_format: log.as_ref().map_or_else(default_format, |log| log.format),
                audit: audit.map(|audit| audit.relative_to(base)),
                http_trace,
                cache: base.join(cache),
                image_dirs: image_dirs.iter().map(|dir| base.join(dir)).collect(),
                allow_local,
                hardening,
                api_version,
                warnings: [warnings, advice].concat(),
            }),
            _ => Err(sections.problems),
        }
    }
}

/// The audit log of a config that cannot be used otherwise: that a call failed
/// for that belongs into it.
pub fn audit_alone(path: &Path) -> Option<AuditConfig> {
    let (text, _) = read(path).ok()?;
    let mut fields = strict_json::parse(&text, MAX_DEPTH).ok()?;
    let audit: AuditConfig = serde_json::from_value(fields.get_mut("audit")?.take()).ok()?;
    audit.problems().is_empty().then(|| audit.relative_to(path.parent().unwrap_or(Path::new("."))))
}

pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Many problems as one failure: the first in the message, all in the log.
pub fn several(path: &Path, problems: &[String]) -> Failure {
    let first = problems.first().map_or("", String::as_str);
    let rest = match problems.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more; `wasm-cpi check` lists them)", n - 1),
    };
    Failure::config(format!("{}: {first}{rest}", path.display())).with_detail(problems.join("\n"))
}

/// Reads a file that decides about trust: only its owner may be able to write it.
pub fn read(path: &Path) -> Result<(String, Vec<String>), Failure> {
    let (text, mode) =
        trust::read(path, MAX_BYTES).map_err(|what| Failure::config(format!("{}: {what}", path.display())))?;
    let mut warnings = Vec::new();
    if mode & 0o004 != 0 {
        warnings
            .push(format!("{} is readable by everybody; run `chmod o-r` on it if it holds secrets", path.display()));
    }
    Ok((text, warnings))
}

struct Sections {
    fields: Map<String, Value>,
    problems: Vec<String>,
}

impl Sections {
    fn problem(&mut self, text: &str) {
        self.problems.push(text.to_owned());
    }

    fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.fields.remove(key).filter(|value| !value.is_null())?;
        match serde_json::from_value(value) {
            Ok(section) => Some(section),
            Err(error) => {
                // Serde quotes values in type errors; they may be secrets.
                self.problems.push(format!("`{key}` is not right: {}", without_values(&error.to_string())));
                None
            }
        }
    }

    fn required<T: DeserializeOwned>(&mut self, key: &str, example: &str) -> Option<T> {
        if self.fields.get(key).is_none_or(Value::is_null) {
            self.problems.push(format!("`{key}` is missing; add \"{key}\": {example}"));
            self.fields.remove(key);
            return None;
        }
        self.optional(key)
    }

    fn unknown(&mut self) {
        for key in self.fields.keys().filter(|_| Check::UnknownKey.on()) {
            self.problems.push(format!("`{key}` is not a key of the configuration; remove it or mend its spelling"));
        }
    }
}

/// `invalid type: string "hunter2", expected …` without the string.
fn without_values(message: &str) -> String {
    let kinds = ["invalid type: ", "invalid value: ", "unknown variant "];
    let shown = kinds.iter().find_map(|what| Some((*what, message.find(what)?)));
    match (shown, message.rfind(", expected ")) {
        (Some((what, start)), Some(end)) if start < end => {
            format!("{}{}{}", &message[..start], what.trim_end_matches([':', ' ']), &message[end..])
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(value: &Value) -> Result<Config, Vec<String>> {
        Config::parse(Path::new("/job/config/cpi.json"), &value.to_string(), Vec::new())
    }

    fn minimal() -> Value {
        json!({"version": 1, "guest": {"path": "../guest.wasm", "sha256": "0".repeat(64)}})
    }

    #[test]
    fn paths_are_relative_to_the_file_and_defaults_are_filled_in() {
        let config = parse(&minimal()).ok().unwrap();
        assert_eq!(config.guest.path, Path::new("/job/config/../guest.wasm"));
        assert_eq!(config.policy, Path::new("/job/config/policy.json"));
        assert_eq!((config.api_version, config.allow_local, &config.limits), (3, false, &Limits::default()));
    }

    #[test]
    fn every_problem_is_listed() {
        let problems = parse(&json!({
            "version": 2, "guest": {"path": "x", "sha256": "ABC"}, "limits": {"memory_mib": 0}, "polcy": "x",
            "allow_local": "yes-hunter2", "debug": {"cpi": {"api_version": 9}}, "log": {"level": "loud"},
        }))
        .err()
        .unwrap();
        let all = problems.join("\n");
        for said in
            ["`version` must be 1", "`guest.sha256`", "memory_mib", "`polcy`", "`allow_local`", "api_version", "`log`"]
        {
            assert!(all.contains(said), "{said} in {all}");
        }
        assert!(!all.contains("hunter2"), "{all}");
    }

    #[test]
    fn duplicate_keys_are_refused() {
        let text = r#"{"version":1,"version":1}"#;
        assert!(Config::parse(Path::new("c"), text, Vec::new()).err().unwrap()[0].contains("twice"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,120}") {
            let _ = Config::parse(Path::new("c"), &text, Vec::new());
        }
    }
}
