//! What a call needs of the config before its request is read, and even if the rest of
//! the config is wrong: a call that fails for its config still has to be answered,
//! logged and audited.

use super::{AuditConfig, ConfigArg, LogSection, MAX_DEPTH, module, read};
use crate::limits::Limits;
use crate::log::{Format, Level};
use crate::rpc::API_VERSION;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::Path;
use wasm_cpi_policy::strict_json;

/// The settings of a call that do not depend on the rest of the config being right.
pub struct Basics {
    /// The largest request.
    pub request_mib: u64,
    /// The newest API version that the caller may use.
    pub api_version: u32,
    pub log_level: Level,
    pub log_format: Format,
    /// Absent if there is no audit log.
    pub audit: Option<AuditConfig>,
}

impl Default for Basics {
    fn default() -> Self {
        Basics {
            request_mib: Limits::default().lifted().request_mib,
            api_version: API_VERSION,
            log_level: Level::Info,
            log_format: Format::Text,
            audit: None,
        }
    }
}

impl Basics {
    /// Reads what it can. What is missing or wrong has its default here; `Config::load`
    /// reports it.
    pub fn read(source: &ConfigArg) -> Basics {
        fields(source).map_or_else(Basics::default, |fields| Basics::from(&fields, &source.path))
    }

    fn from(fields: &Map<String, Value>, path: &Path) -> Basics {
        let defaults = Basics::default();
        let limits = section::<Limits>(fields, "limits").filter(|limits| limits.problems().is_empty());
        let log = section::<LogSection>(fields, "log");
        let audit = section::<AuditConfig>(fields, "audit").filter(|audit| audit.problems().is_empty());
        let api_version =
            fields.get("debug").and_then(|debug| debug.pointer("/cpi/api_version")).and_then(Value::as_u64);
        let api_version = api_version.and_then(|version| u32::try_from(version).ok());
        Basics {
            request_mib: limits.map_or(defaults.request_mib, |limits| limits.lifted().request_mib),
            api_version: api_version.filter(|version| (1..=API_VERSION).contains(version)).unwrap_or(API_VERSION),
            log_level: log.as_ref().map_or(defaults.log_level, |log| log.level),
            log_format: log.as_ref().map_or(defaults.log_format, |log| log.format),
            audit: audit.map(|audit| audit.relative_to(path.parent().unwrap_or(Path::new(".")))),
        }
    }
}

fn fields(source: &ConfigArg) -> Option<Map<String, Value>> {
    let (text, _) = read(&source.path).ok()?;
    let Ok(Value::Object(fields)) = strict_json::parse(&text, MAX_DEPTH) else { return None };
    Some(module::of_module(fields.clone(), source.module.as_deref()).unwrap_or(fields))
}

fn section<T: DeserializeOwned>(fields: &Map<String, Value>, key: &str) -> Option<T> {
    serde_json::from_value(fields.get(key)?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn basics(config: &Value) -> Basics {
        Basics::from(config.as_object().unwrap(), Path::new("/job/config/cpi.json"))
    }

    #[test]
    fn what_is_right_counts_whatever_else_is_wrong() {
        let basics = basics(&json!({
            "version": 9, "polcy": 1, "limits": {"request_mib": 2}, "log": {"level": "debug"},
            "audit": {"path": "../audit.log"}, "debug": {"cpi": {"api_version": 2}},
        }));
        assert_eq!((basics.request_mib, basics.api_version), (2, 2));
        assert_eq!((basics.log_level, basics.log_format), (Level::Debug, Format::Text));
        assert_eq!(basics.audit.unwrap().path, Path::new("/job/config/../audit.log"));
    }

    #[test]
    fn what_is_wrong_has_its_default() {
        for config in [
            json!({"limits": {"request_mib": 0}, "log": 1, "audit": {"path": ""}, "debug": {"cpi": {"api_version": 9}}}),
            json!({"limits": {"request_mb": 2}, "log": {"level": "loud"}, "audit": {}, "debug": 7}),
            json!({}),
        ] {
            let basics = basics(&config);
            assert_eq!((basics.request_mib, basics.api_version), (Limits::default().request_mib, API_VERSION));
            assert_eq!((basics.log_level, basics.audit), (Level::Info, None), "{config}");
        }
    }
}
