//! The BOSH registry, for cases that [`crate::agent`] does not cover. Secrets in
//! settings are seals. A guest can change only `disks` and `networks`.
//!
//! ```
//! use serde_json::json;
//! use wasm_cpi_sdk::{fake::Fake, registry};
//!
//! let host = Fake::new().registry_entry("vm-1", json!({"disks": {}})).install();
//! registry::put("vm-1", &json!({"disks": {"persistent": {"disk-1": "/dev/sdb"}}})).unwrap();
//! assert_eq!(registry::get("vm-1").unwrap(), host.registry_settings("vm-1"));
//! registry::delete("vm-1").unwrap();
//! assert_eq!(registry::get("vm-1").unwrap(), None);
//! ```

use serde_json::Value;

use crate::bindings::bosh::cpi::registry as wire;
use crate::{Error, Json, host};

/// Returns the settings of an ID, or `None` if the registry has none.
pub fn get(id: &str) -> Result<Option<Value>, Error> {
    match host::current().registry_get(id) {
        Ok(text) => Json::named(format!("settings of {id}"), text).value().map(Some),
        Err(wire::Error::NotFound) => Ok(None),
        Err(error) => Err(failed("reading", id, error)),
    }
}

/// Stores settings for an ID, a JSON object. Keys that it leaves out stay as they
/// are.
pub fn put(id: &str, settings: &Value) -> Result<(), Error> {
    host::current().registry_put(id, &settings.to_string()).map_err(|error| failed("writing", id, error))
}

/// Deletes the settings of an ID. It succeeds if there are none.
pub fn delete(id: &str) -> Result<(), Error> {
    match host::current().registry_delete(id) {
        Ok(()) | Err(wire::Error::NotFound) => Ok(()),
        Err(error) => Err(failed("deleting", id, error)),
    }
}

fn failed(doing: &str, id: &str, error: wire::Error) -> Error {
    match error {
        wire::Error::Denied(message) | wire::Error::Invalid(message) => Error::cpi(message),
        wire::Error::NotFound => Error::cloud("the registry has no settings for this ID"),
        wire::Error::Unavailable(message) => Error::cloud(message),
        wire::Error::Cancelled(why) => crate::clock::Cancelled(why).into(),
    }
    .context(format_args!("{doing} the registry's settings of {id}"))
}
