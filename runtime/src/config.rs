//! The operator's file, `config/cpi.json`: read, checked as a whole, typed.
//!
//! Every problem is reported, not the first: an operator mends a file once.
//! Paths in it are relative to the file. Nothing here touches the network or the
//! guest.

mod audit;
mod early_settings;
mod guest;
mod installed;
mod module;

pub use audit::AuditConfig;
pub use early_settings::EarlySettings;
pub use installed::{ConfigArg, Packages};

use crate::agent::AgentConfig;
use crate::component::prepared::Preparation;
use crate::component::signature::Signature;
use crate::component::source::PinnedGuest;
use crate::failure::Failure;
use crate::hardening::Hardening;
use crate::limits::Limits;
use crate::log::{Format, Level};
use crate::net::http_trace::HttpTrace;
use crate::net::proxy::ProxyConfig;
use crate::registry::RegistryConfig;
use crate::rpc::API_VERSION;
use crate::trust;
use guest::GuestSection;
use installed::Installed;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::strict_json;

/// A larger file is no configuration.
const MAX_BYTES: u64 = 4 << 20;

const MAX_DEPTH: usize = 64;

pub struct Config {
    pub guest: PinnedGuest,
    pub properties: Map<String, Value>,
    pub agent: AgentConfig,
    pub registry: Option<RegistryConfig>,
    pub proxy: Option<ProxyConfig>,
    pub policy: PathBuf,
    /// The policy itself, where it stands in this file.
    pub inline_policy: Option<String>,
    pub packages: Packages,
    pub limits: Limits,
    /// Absent if there is no audit log.
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
    /// Returns what has to be prepared for it.
    pub fn preparation(&self) -> Preparation<'_> {
        Preparation { guest: &self.guest, cache: &self.cache, limits: &self.limits, hardening: self.hardening }
    }

    pub fn load(source: &ConfigArg) -> Result<Config, Failure> {
        let path = &source.path;
        let (text, warnings) = read(path)?;
        let mut config = Config::parse(source, &text, warnings).map_err(|problems| several(path, &problems))?;
        if config.guest.sha256.is_empty() {
            config.guest.sha256 = guest::pin_beside(&config.guest.path)?;
            config.warnings.push(format!(
                "guest {} is pinned by its own package; set `guest.sha256` to be asked before another one runs",
                config.guest.path.display()
            ));
        }
        Ok(config)
    }

    /// The config's own guest, if it has one, and those of all its modules.
    pub fn load_all(source: &ConfigArg) -> Result<Vec<Config>, Failure> {
        let (text, _) = read(&source.path)?;
        let fields = strict_json::parse(&text, MAX_DEPTH).unwrap_or_default();
        let modules = fields.get("modules").and_then(Value::as_object);
        let named = modules.into_iter().flat_map(Map::keys);
        let named = named.map(|name| ConfigArg { module: Some(name.clone()), ..source.clone() });
        let own = (modules.is_none_or(Map::is_empty) || fields.get("guest").is_some()).then(|| source.clone());
        own.into_iter().chain(named).map(|source| Config::load(&source)).collect()
    }

    /// All problems of the text, each a sentence.
    pub fn parse(source: &ConfigArg, text: &str, warnings: Vec<String>) -> Result<Config, Vec<String>> {
        let path = source.path.as_path();
        let mut fields = match strict_json::parse(text, MAX_DEPTH) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(vec!["the file must hold a JSON object".into()]),
            Err(error) => return Err(vec![format!("the file is not JSON: {error}")]),
        };
        fields = module::of_module(fields, source.module.as_deref())?;
        let packages = Packages::of(source);
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
        let proxy: Option<ProxyConfig> = sections.optional("proxy");
        let (policy, inline_policy) = sections.policy(path);
        let limits: Limits = sections.optional("limits").unwrap_or_default();
        // Only checked here: `EarlySettings` reads the values.
        let _: Option<LogSection> = sections.optional("log");
        let audit: Option<AuditConfig> = sections.optional("audit");
        let http_trace: Option<HttpTrace> = sections.optional("http_trace");
        let cache: Option<PathBuf> = sections.optional("cache");
        let cache = cache.unwrap_or_else(|| {
            Installed::around(path).map_or("cache".into(), |installed| installed.data().join("cache"))
        });
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
        let module = guest
            .as_ref()
            .and_then(|guest| guest.file(base, &packages).map_err(|problem| sections.problems.extend(problem)).ok());
        let signature = guest.as_ref().and_then(|guest| guest.signature.as_ref()).and_then(|section| {
            Signature::parse(section, base).map_err(|problems| sections.problems.extend(problems)).ok()
        });
        if let Some(registry) = &mut registry {
            registry.resolve_paths(base);
        }
        match module {
            Some((file, sha256)) if sections.problems.is_empty() => Ok(Config {
                guest: PinnedGuest { path: file, sha256, signature },
                properties,
                agent,
                registry,
                proxy,
                policy: base.join(policy),
                inline_policy,
                packages,
                limits: limits.lifted(),
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

/// Many problems as one failure: the first in the message, all in the log.
pub fn several(path: &Path, problems: &[String]) -> Failure {
    let first = problems.first().map_or("", String::as_str);
    let rest = match problems.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more; `wasm-cpi check` lists them)", n - 1),
    };
    Failure::config(format!("{}: {first}{rest}", path.display())).with_detail(problems.join("\n"))
}

/// Reads a file that decides about trust: only its owner may be able to write it. Returns
/// its text, and what people should know about the file.
pub fn read(path: &Path) -> Result<(String, Vec<String>), Failure> {
    let failed = |error| Failure::config(format!("{}: {error}", path.display()));
    let (text, mode) = trust::read(path, MAX_BYTES).map_err(failed)?;
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

    /// The file that the policy is in, and the policy if it stands in the config itself.
    fn policy(&mut self, config: &Path) -> (PathBuf, Option<String>) {
        match self.fields.remove("policy") {
            None | Some(Value::Null) => ("policy.json".into(), None),
            Some(Value::String(file)) => (file.into(), None),
            Some(Value::Object(policy)) => {
                (config.file_name().unwrap_or_default().into(), Some(Value::Object(policy).to_string()))
            }
            Some(_) => {
                self.problem("`policy` must be the path of a file, or a policy itself");
                ("policy.json".into(), None)
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
mod tests;
