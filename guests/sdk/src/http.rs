//! Requests to the cloud: one at a time, to origins that the operator granted.
//! Credentials are the host's business: a guest sets none. A request is built,
//! sent, checked and parsed:
//! `http::get(url).retries(3).send()?.ok()?.json::<Server>()?`.
//!
//! Nothing is tried again unless the guest says so with [`Request::retries`],
//! and then only what cannot happen twice by it.

mod cloud_text;
mod error;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod url;

use serde::de::DeserializeOwned;

use crate::{host, json};

pub use crate::bindings::bosh::cpi::http::{Denial, ErrorKind, ImagePart};
pub use error::{Cause, Error};
pub use request::Request;
pub use response::Response;
pub use url::segment;

pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

pub fn head(url: impl Into<String>) -> Request {
    Request::new("HEAD", url)
}

pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

pub fn put(url: impl Into<String>) -> Request {
    Request::new("PUT", url)
}

pub fn patch(url: impl Into<String>) -> Request {
    Request::new("PATCH", url)
}

pub fn delete(url: impl Into<String>) -> Request {
    Request::new("DELETE", url)
}

/// What the operator lets a guest see of the login `name`, for example a
/// catalogue of the cloud's endpoints.
pub fn session<T: DeserializeOwned>(name: &str) -> Result<T, Error> {
    let what = format!("login {name}");
    let text = host::current().http_session(name).map_err(|error| Error::transport(&what, error))?;
    json::from_slice(text.as_bytes()).map_err(|problem| Error::decode(&what, problem.named("the answer")))
}
