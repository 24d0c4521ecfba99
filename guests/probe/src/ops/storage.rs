//! The outcomes of the operations `registry.*` and `image.*`.

use serde_json::{Value, json};
use wasm_cpi_sdk::bindings::bosh::cpi::{image, registry};

use super::Failure;

pub(super) fn registry(outcome: Result<impl Into<Value>, registry::Error>) -> Result<Value, Failure> {
    outcome.map(Into::into).map_err(|error| match error {
        registry::Error::Denied(message) => Failure::new("denied", message),
        registry::Error::NotFound => Failure::new("not-found", ""),
        registry::Error::Invalid(message) => Failure::new("invalid", message),
        registry::Error::Unavailable(message) => Failure::new("unavailable", message),
        registry::Error::Cancelled(why) => Failure::new("cancelled", why),
    })
}

pub(super) fn image(outcome: Result<impl Into<Value>, image::Error>) -> Result<Value, Failure> {
    outcome.map(Into::into).map_err(|error| match error {
        image::Error::Denied(message) => Failure::new("denied", message),
        image::Error::Invalid(message) => Failure::new("invalid", message),
        image::Error::Io(message) => Failure::new("io", message),
        image::Error::Cancelled(why) => Failure::new("cancelled", why),
    })
}

pub(super) fn members(members: Vec<image::Member>) -> Value {
    members.iter().map(|member| json!({"name": member.name, "size": member.size})).collect()
}
