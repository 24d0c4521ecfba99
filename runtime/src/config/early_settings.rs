//! The settings that a call needs before its request is read, and even if the rest of the config
//! is invalid: a call that fails because of its config is still answered, logged and audited.

use super::{AuditConfig, ConfigFile, LogSection, module};
use crate::component::digest::is_hex_digest;
use crate::limits::Limits;
use crate::log::{Format, Level};
use crate::rpc::API_VERSION;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::Path;

/// The settings of a call that are valid even if the rest of the config is not.
pub struct EarlySettings {
    /// The largest request, in MiB.
    pub request_mib: u64,
    /// The time for reading the request, in seconds.
    pub wall_seconds: u64,
    /// The newest API version that the caller may use.
    pub api_version: u32,
    pub log_level: Level,
    pub log_format: Format,
    /// Absent if there is no audit log.
    pub audit: Option<AuditConfig>,
    /// The guest's pin, if the config itself has it.
    pub guest_sha256: Option<String>,
}

impl Default for EarlySettings {
    fn default() -> Self {
        EarlySettings {
            request_mib: Limits::default().lifted().request_mib,
            wall_seconds: Limits::default().lifted().wall_seconds,
            api_version: API_VERSION,
            log_level: Level::Info,
            log_format: Format::Text,
            audit: None,
            guest_sha256: None,
        }
    }
}

impl EarlySettings {
    /// Returns the settings of the file, which is absent if it cannot be read. A setting that is
    /// missing or invalid gets its default here; `Config::of` reports the mistake.
    pub fn of(file: Option<&ConfigFile>) -> EarlySettings {
        let Some(ConfigFile { source, fields, .. }) = file else { return EarlySettings::default() };
        let module = source.module.as_deref();
        let selected = module.and_then(|name| module::select_module(fields.clone(), Some(name)).ok());
        EarlySettings::from(selected.as_ref().unwrap_or(fields), &source.path)
    }

    fn from(fields: &Map<String, Value>, path: &Path) -> EarlySettings {
        let defaults = EarlySettings::default();
        let limits = section::<Limits>(fields, "limits").filter(|limits| limits.problems().is_empty());
        let limits = limits.unwrap_or_default().lifted();
        let log = section::<LogSection>(fields, "log");
        let audit = section::<AuditConfig>(fields, "audit").filter(|audit| audit.problems().is_empty());
        let sha256 = fields.get("guest").and_then(|guest| guest.get("sha256")).and_then(Value::as_str);
        let api_version =
            fields.get("debug").and_then(|debug| debug.pointer("/cpi/api_version")).and_then(Value::as_u64);
        let api_version = api_version.and_then(|version| u32::try_from(version).ok());
        EarlySettings {
            request_mib: limits.request_mib,
            wall_seconds: limits.wall_seconds,
            api_version: api_version.filter(|version| (1..=API_VERSION).contains(version)).unwrap_or(API_VERSION),
            log_level: log.as_ref().map_or(defaults.log_level, |log| log.level),
            log_format: log.as_ref().map_or(defaults.log_format, |log| log.format),
            audit: audit.map(|audit| audit.relative_to(path.parent().unwrap_or(Path::new(".")))),
            guest_sha256: sha256.filter(|sha256| is_hex_digest(sha256)).map(str::to_owned),
        }
    }
}

fn section<T: DeserializeOwned>(fields: &Map<String, Value>, key: &str) -> Option<T> {
    serde_json::from_value(fields.get(key)?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(config: &Value) -> EarlySettings {
        EarlySettings::from(config.as_object().unwrap(), Path::new("/job/config/cpi.json"))
    }

    #[test]
    fn a_valid_setting_is_used_even_if_others_are_invalid() {
        let settings = settings(&json!({
            "version": 9, "guest": {"path": "x", "sha256": "0".repeat(64)}, "polcy": 1, "limits": {"request_mib": 2, "wall_seconds": 9}, "log": {"level": "debug"},
            "audit": {"path": "../audit.log"}, "debug": {"cpi": {"api_version": 2}},
        }));
        assert_eq!((settings.request_mib, settings.wall_seconds, settings.api_version), (2, 9, 2));
        assert_eq!((settings.log_level, settings.log_format), (Level::Debug, Format::Text));
        assert_eq!(settings.guest_sha256, Some("0".repeat(64)));
        assert_eq!(settings.audit.unwrap().path, Path::new("/job/config/../audit.log"));
    }

    #[test]
    fn an_invalid_setting_has_its_default() {
        for config in [
            json!({"limits": {"request_mib": 0}, "log": 1, "audit": {"path": ""}, "debug": {"cpi": {"api_version": 9}}}),
            json!({"limits": {"request_mb": 2}, "log": {"level": "loud"}, "audit": {}, "debug": 7}),
            json!({}),
        ] {
            let settings = settings(&config);
            assert_eq!((settings.request_mib, settings.api_version), (Limits::default().request_mib, API_VERSION));
            assert_eq!((settings.log_level, settings.audit), (Level::Info, None), "{config}");
        }
    }
}
