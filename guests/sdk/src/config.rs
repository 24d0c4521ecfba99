//! What the operator configured, and what this call is.

use serde::de::DeserializeOwned;

use crate::{Error, Json, host};

pub use crate::bindings::bosh::cpi::config::CallInfo;

/// The CPI's properties as `T`. What the operator did not expose is a
/// [`crate::Seal`], whatever its type was.
pub fn properties<T: DeserializeOwned>() -> Result<T, Error> {
    Json::named("properties", host::current().properties()).parse()
}

/// The call at hand.
pub fn call() -> CallInfo {
    host::current().call()
}
