//! HTTP requests to the origins that the operator granted. A guest
//! sets no credentials: the host adds them. A guest builds a request, sends it,
//! checks the status and parses the body:
//!
//! ```
//! use serde::Deserialize;
//! use serde_json::json;
//! use wasm_cpi_sdk::fake::{Answer, Fake};
//! use wasm_cpi_sdk::{Error, http};
//!
//! #[derive(Deserialize)]
//! struct Server {
//!     id: String,
//! }
//!
//! fn create(name: &str) -> Result<Server, Error> {
//!     let request = http::post("https://cloud.example/servers").json(&json!({"name": name}));
//!     Ok(request.retries(3).send()?.ok()?.json()?)
//! }
//!
//! let host = Fake::new()
//!     .on("POST", "https://cloud.example/servers", Answer::json(201, json!({"id": "s-1"})))
//!     .install();
//! assert_eq!(create("vm-1").unwrap().id, "s-1");
//! assert_eq!(host.request_json(0), Some(json!({"name": "vm-1"})));
//! ```
//!
//! A request is repeated only if the guest allows it with [`Request::retries`],
//! and only where a repetition cannot do anything twice. [`send_all`] sends
//! requests that do not depend on each other at once, and [`put_blocks`] uploads
//! the image in blocks.

mod blocks;
mod cloud_text;
mod error;
mod request;
mod response;
mod retries;
mod send_all;
#[cfg(test)]
mod tests;
mod url;

use serde::de::DeserializeOwned;

use crate::{host, json};

pub use crate::bindings::bosh::cpi::http::{BlocksSent, BodyPart, Denial, ErrorKind as TransportError, ImagePart};
pub use blocks::{BlockUpload, put_blocks};
pub use error::{Cause, RequestError};
pub use request::Request;
pub use response::Response;
pub use send_all::send_all;
pub(crate) use url::form;
pub use url::segment;
#[cfg(not(target_family = "wasm"))]
pub(crate) use url::without_query;

/// Starts a GET request.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// Starts a HEAD request.
pub fn head(url: impl Into<String>) -> Request {
    Request::new("HEAD", url)
}

/// Starts a POST request.
pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

/// Starts a PUT request.
pub fn put(url: impl Into<String>) -> Request {
    Request::new("PUT", url)
}

/// Starts a PATCH request.
pub fn patch(url: impl Into<String>) -> Request {
    Request::new("PATCH", url)
}

/// Starts a DELETE request.
pub fn delete(url: impl Into<String>) -> Request {
    Request::new("DELETE", url)
}

/// Logs in with the policy's login `name`, if necessary, and returns the part of
/// its response that the operator shows to the guest: for example, the list of
/// the cloud's endpoints.
pub fn session<T: DeserializeOwned>(name: &str) -> Result<T, RequestError> {
    let what = format!("login `{name}`");
    let text = host::current().http_session(name).map_err(|error| RequestError::transport(&what, error))?;
    json::from_slice(text.as_bytes())
        .map_err(|problem| RequestError::decode(&what, problem.named("the shown response")))
}
