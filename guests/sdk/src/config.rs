//! The operator's configuration and the facts of the current call.
//!
//! ```
//! use serde::Deserialize;
//! use serde_json::json;
//! use wasm_cpi_sdk::{Seal, config, fake::Fake};
//!
//! #[derive(Deserialize)]
//! struct Properties {
//!     endpoint: String,
//!     password: Seal,
//! }
//!
//! let _host = Fake::new().properties(json!({"endpoint": "https://cloud.example", "password": "seal-1"})).install();
//! let Properties { endpoint, password } = config::properties().unwrap();
//! assert_eq!((endpoint.as_str(), password.as_str()), ("https://cloud.example", "seal-1"));
//! assert_eq!(config::call().api_version, 2);
//! ```

use serde::de::DeserializeOwned;

use crate::{Error, Json, host};

pub use crate::bindings::bosh::cpi::config::CallInfo;

/// Returns the properties of the CPI as `T`. Every value that the operator did
/// not expose is a [`crate::Seal`], whatever its type was.
pub fn properties<T: DeserializeOwned>() -> Result<T, Error> {
    Json::named("properties", host::current().properties()).parse()
}

/// Returns the facts of the current call.
pub fn call() -> CallInfo {
    host::current().call()
}
