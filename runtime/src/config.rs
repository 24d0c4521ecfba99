//! The operator's file `config/cpi.json`: reads it, checks all of it, and parses it into a `Config`.
//!
//! All problems are reported at once, so that an operator corrects the file once. Paths in it
//! are relative to the file. Nothing here uses the network or reads the guest.

mod audit;
mod early_settings;
mod file;
mod guest;
mod installation;
mod module;
pub mod operator_file;
mod packages;
mod sections;
mod source;

pub use audit::AuditConfig;
pub use early_settings::EarlySettings;
pub use file::ConfigFile;
pub use installation::{files_owned_by_caller, is_installed_by_cli, written_path};
pub use packages::Packages;
pub use source::ConfigSource;

use crate::agent::AgentConfig;
use crate::component::preparation::Preparation;
use crate::component::signature::RequiredSignatures;
use crate::component::source::PinnedGuest;
use crate::failure::{Failure, Problem};
use crate::guest_of_job::GuestOfJob;
use crate::leak_latch::OnLeak;
use crate::limits::Limits;
use crate::lock_down::LockDownLevel;
use crate::log::{Format, Level};
use crate::net::http_trace::HttpTrace;
use crate::net::proxy::ProxyConfig;
use crate::registry::RegistryConfig;
use crate::rpc::API_VERSION;
use guest::GuestSection;
use installation::Installation;
use sections::Sections;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;

/// The operator's config for one guest, checked and with paths resolved.
pub struct Config {
    pub guest: PinnedGuest,
    pub properties: Map<String, Value>,
    pub agent: AgentConfig,
    pub registry: Option<RegistryConfig>,
    pub proxy: Option<ProxyConfig>,
    /// The file that holds the policy: `policy.json`, or this config itself if the policy is part of it.
    /// Files that the policy names are in its directory.
    pub policy_path: PathBuf,
    /// The text of the policy, if it is part of this config.
    pub policy_text: Option<String>,
    pub packages: Packages,
    pub limits: Limits,
    /// Absent if there is no audit log.
    pub audit: Option<AuditConfig>,
    pub http_trace: Option<HttpTrace>,
    pub cache: PathBuf,
    pub image_dirs: Vec<PathBuf>,
    pub allow_local: bool,
    pub hardening: LockDownLevel,
    /// What follows when a response or a result holds a credential.
    pub on_leak: OnLeak,
    /// True if tokens of logins are kept for later calls.
    pub keep_tokens: bool,
    /// The file, and the module of it, that this config is for.
    pub source: ConfigSource,
    /// The newest API version that `info` returns.
    pub api_version: u32,
    /// What is allowed but not recommended in its files.
    file_warnings: Vec<String>,
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
    /// Returns which guest has to be prepared, and how.
    pub fn preparation(&self) -> Preparation<'_> {
        Preparation { guest: &self.guest, cache: &self.cache, limits: &self.limits, hardening: self.hardening }
    }

    /// Returns the guest of this job, by which leaks are remembered.
    pub fn guest_of_job(&self) -> GuestOfJob<'_> {
        GuestOfJob {
            config: self.source.written_path(),
            module: self.source.module.as_deref(),
            guest_sha256: &self.guest.sha256,
        }
    }

    pub fn load(source: &ConfigSource) -> Result<Config, Failure> {
        Config::of(ConfigFile::read(source)?)
    }

    /// Parses and checks the whole file. Returns the config of one guest, or one failure with all
    /// problems.
    pub fn of(file: ConfigFile) -> Result<Config, Failure> {
        let path = file.source.path.clone();
        Config::parse(file).map_err(|problems| Failure::of_problems(&path.display(), &problems))
    }

    /// Returns what is allowed but not recommended, for `check`. Calls do not compute it.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.file_warnings.clone();
        warnings.extend(self.agent.warnings());
        warnings.extend(self.registry.iter().flat_map(RegistryConfig::warnings));
        if self.allow_local {
            warnings
                .push("`allow_local` lets grants reach this machine; use it only for tests and local clouds".into());
        }
        warnings.extend(self.http_trace.map(HttpTrace::warning));
        if self.on_leak == OnLeak::End {
            warnings.push("`leaks` is `end`: a guest can go on searching for a credential with the next call".into());
        }
        if self.hardening == LockDownLevel::Off {
            warnings.push("`hardening` is `off`: only the engine separates a guest from this machine".into());
        }
        warnings
    }

    /// Loads the config for its own guest, if it has one, and for each of its modules.
    pub fn load_all(source: &ConfigSource) -> Result<Vec<Config>, Failure> {
        let file = ConfigFile::read(source)?;
        let modules = file.fields.get("modules").and_then(Value::as_object);
        let named = modules.into_iter().flat_map(Map::keys);
        let named = named.map(|name| ConfigSource { module: Some(name.clone()), ..source.clone() });
        let own = (modules.is_none_or(Map::is_empty) || file.fields.contains_key("guest")).then(|| source.clone());
        own.into_iter().chain(named).map(|source| Config::of(ConfigFile { source, ..file.clone() })).collect()
    }

    /// Parses all sections, and reads the guest's pin from its package if the config has none. Returns all
    /// problems, each as one sentence.
    pub fn parse(file: ConfigFile) -> Result<Config, Vec<Problem>> {
        let ConfigFile { source, fields, warnings: mut file_warnings } = file;
        let path = source.path.as_path();
        let fields =
            module::select_module(fields, source.module.as_deref()).map_err(|text| vec![Problem::new(text)])?;
        let packages = Packages::of(&source);
        let mut sections = Sections::new(fields);
        match sections.take("version") {
            Some(version) => {
                sections.ensure(Check::UnknownVersion, version == 1, || Problem::new("`version` must be 1"))
            }
            None => sections.add_problem("`version` is missing; set \"version\": 1"),
        }
        sections.accept_schema();
        let guest: Option<GuestSection> = sections.required("guest", "{\"path\": \"….wasm\", \"sha256\": \"…\"}");
        let properties: Map<String, Value> = sections.optional("properties").unwrap_or_default();
        let agent: AgentConfig = sections.optional("agent").unwrap_or_default();
        let mut registry: Option<RegistryConfig> = sections.optional("registry");
        let proxy: Option<ProxyConfig> = sections.optional("proxy");
        let (policy_path, policy_text) = sections.take_policy(path);
        let limits: Limits = sections.optional("limits").unwrap_or_default();
        // The section is only checked here; `EarlySettings` uses its values.
        let _: Option<LogSection> = sections.optional("log");
        let audit: Option<AuditConfig> = sections.optional("audit");
        let http_trace: Option<HttpTrace> = sections.optional("http_trace");
        let cache: Option<PathBuf> = sections.optional("cache");
        let cache =
            cache.unwrap_or_else(|| Installation::of(path).map_or("cache".into(), |installation| installation.cache()));
        let image_dirs: Vec<PathBuf> = sections.optional("image_dirs").unwrap_or_default();
        let allow_local: bool = sections.optional("allow_local").unwrap_or(false);
        let hardening: LockDownLevel = sections.optional("hardening").unwrap_or_default();
        let on_leak: OnLeak = sections.optional("leaks").unwrap_or_default();
        let keep_tokens: bool = sections.optional("keep_tokens").unwrap_or(true);
        let debug: Option<DebugSection> = sections.optional("debug");
        sections.report_unknown_keys();
        sections.problems.extend(limits.problems().into_iter().map(Problem::new));
        sections.problems.extend(audit.iter().flat_map(AuditConfig::problems).map(Problem::new));
        let api_version = debug.and_then(|debug| debug.cpi.api_version).unwrap_or(API_VERSION);
        if !(1..=API_VERSION).contains(&api_version) {
            sections
                .add_problem(format!("`debug.cpi.api_version` is {api_version}; it must be from 1 to {API_VERSION}"));
        }
        let base = path.parent().unwrap_or(Path::new("."));
        let file_and_pin = guest
            .as_ref()
            .and_then(|guest| guest.file(base, &packages).map_err(|problems| sections.problems.extend(problems)).ok());
        let signature = guest.as_ref().and_then(|guest| guest.signature.as_ref()).and_then(|section| {
            RequiredSignatures::parse(section, base).map_err(|problems| sections.problems.extend(problems)).ok()
        });
        if let Some(registry) = &mut registry {
            registry.resolve_paths(base);
        }
        match file_and_pin {
            Some((file, pin)) if sections.problems.is_empty() => {
                let sha256 = match pin {
                    Some(pin) => pin,
                    None => {
                        file_warnings.push(guest::pinned_by_package(&file));
                        guest::pin_beside(&file).map_err(|problem| vec![problem])?
                    }
                };
                Ok(Config {
                    guest: PinnedGuest { path: file, sha256, signature },
                    properties,
                    agent,
                    registry,
                    proxy,
                    policy_path: base.join(policy_path),
                    policy_text,
                    packages,
                    limits: limits.lifted(),
                    audit: audit.map(|audit| audit.relative_to(base)),
                    http_trace,
                    cache: base.join(cache),
                    image_dirs: image_dirs.iter().map(|dir| base.join(dir)).collect(),
                    allow_local,
                    hardening,
                    on_leak,
                    keep_tokens,
                    source,
                    api_version,
                    file_warnings,
                })
            }
            _ => Err(sections.problems),
        }
    }
}

#[cfg(test)]
mod tests;
