//! The operator's configuration and the facts of the current call.

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
