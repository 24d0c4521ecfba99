//! One service of the cloud: its URL, and requests to it. IDs come from the
//! Director, so callers encode them with `http::segment`. A request that changes
//! something logs one line, so that the log of the Director's task lists all changes.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wasm_cpi_sdk::http::{self, Denial, Request, RequestError, Response};
use wasm_cpi_sdk::log;

use super::{ReadAhead, with_detail};
use crate::session::ServiceKind;

/// The number of retries of a request that is safe to repeat, with pauses of 1 to
/// 8 seconds, or as long as the cloud asks for.
const RETRIES: u32 = 4;

pub(crate) struct Service {
    kind: ServiceKind,
    url: String,
    /// True if the operator's property has the URL of the catalog.
    matches_property: bool,
    ahead: ReadAhead,
}

impl Service {
    /// `property` is the operator's URL for this service.
    pub(crate) fn new(kind: ServiceKind, url: &str, property: Option<&str>, ahead: ReadAhead) -> Self {
        let matches_property = property.is_some_and(|property| property.trim_end_matches('/') == url);
        Self { kind, url: url.to_owned(), matches_property, ahead }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Returns the request that [`Self::find`] sends, to read it ahead; `None` if it sends none.
    pub(super) fn request_of(&self, path: &str) -> Option<Request> {
        (!has_impossible_id(path)).then(|| http::get(self.url(path)))
    }

    /// Sends a request, with retries where that is safe, unless its answer was read ahead.
    /// The error of a denial names the property to set, if the property is the reason.
    pub(super) fn send(&self, request: Request) -> Result<Response, RequestError> {
        let sent = self.ahead.take(&request).unwrap_or_else(|| prepared(request).send());
        sent.map_err(|error| match error.denial() {
            Some(Denial::Undeclared | Denial::Scheme | Denial::Host | Denial::Port | Denial::Path)
                if !self.matches_property =>
            {
                let (name, url) = (self.kind.name(), &self.url);
                with_detail(error, &format!("set the property `endpoints.{name}` to `{url}`, the URL in the catalog"))
            }
            _ => error,
        })
    }

    /// Returns `None` if the service answers that the object does not exist. A 404
    /// that is not JSON comes from a proxy, which does not know.
    fn unless_missing(&self, response: Response) -> Result<Option<Response>, RequestError> {
        let is_json = response.json::<Map<String, Value>>().is_ok();
        match response.ok() {
            Ok(response) => Ok(Some(response)),
            Err(error) if error.is_not_found() && is_json => Ok(None),
            Err(error) if error.is_not_found() => {
                let (name, url) = (self.kind.name(), &self.url);
                Err(with_detail(
                    error,
                    &format!("the answer is not from the {name} service; check that `{url}` is its URL"),
                ))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn read<T: DeserializeOwned>(&self, request: Request) -> Result<T, RequestError> {
        self.send(request)?.ok()?.json()
    }

    /// Reads an object, or returns `None` if it does not exist.
    pub(super) fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, RequestError> {
        let Some(request) = self.request_of(path) else { return Ok(None) };
        self.unless_missing(self.send(request)?)?.map(|response| response.json()).transpose()
    }

    /// Creates an object. The caller logs it, as the answer has its ID.
    pub(super) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, RequestError> {
        self.read(http::post(self.url(path)).json(body))
    }

    /// Sends a POST whose answer holds no result, and logs `change`.
    pub(super) fn post_action(
        &self,
        path: &str,
        body: &impl Serialize,
        change: impl Display,
    ) -> Result<(), RequestError> {
        self.change(http::post(self.url(path)).json(body), change)
    }

    /// Sends a POST that has the same effect if it is sent twice. Returns true if the object of the
    /// path exists, and then logs `change`.
    pub(super) fn post_repeatable(
        &self,
        path: &str,
        body: &impl Serialize,
        change: impl Display,
    ) -> Result<bool, RequestError> {
        if has_impossible_id(path) {
            return Ok(false);
        }
        let post = http::post(self.url(path)).repeatable().json(body);
        let exists = self.unless_missing(self.send(post)?)?.is_some();
        if exists {
            log::info(change);
        }
        Ok(exists)
    }

    pub(super) fn put(&self, path: &str, body: &impl Serialize, change: impl Display) -> Result<(), RequestError> {
        self.change(http::put(self.url(path)).json(body), change)
    }

    /// Sends a request that changes something, and logs `change` if the service accepted it.
    pub(super) fn change(&self, request: Request, change: impl Display) -> Result<(), RequestError> {
        self.send(request)?.ok()?;
        log::info(change);
        Ok(())
    }

    /// Deletes an object. Returns true if it existed, and then logs that it is deleted.
    pub(super) fn delete(&self, path: &str, what: impl Display) -> Result<bool, RequestError> {
        if has_impossible_id(path) {
            return Ok(false);
        }
        let existed = self.unless_missing(self.send(http::delete(self.url(path)))?)?.is_some();
        if existed {
            log::info(format_args!("deleted {what}"));
        }
        Ok(existed)
    }
}

/// Adds what all requests have in common. Without this header, Glance answers errors with HTML.
pub(super) fn prepared(request: Request) -> Request {
    request.header("accept", "application/json").retries(RETRIES)
}

/// Returns true if an ID from the Director would change the path, or if the host
/// refuses to send it. No object has such an ID.
fn has_impossible_id(path: &str) -> bool {
    let slash = |part: &str| ["%2F", "%5C"].iter().any(|code| part.to_ascii_uppercase().contains(code));
    path.split('/').skip(1).any(|part| matches!(part, "" | "." | "..") || slash(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_cpi_sdk::http::segment;

    #[test]
    fn ids_that_would_change_the_path_are_impossible() {
        for (id, impossible) in [
            ("", true),
            (".", true),
            ("..", true),
            ("../flavors", true),
            ("a\\b", true),
            ("a b?c", false),
            ("a-1", false),
        ] {
            assert_eq!(has_impossible_id(&format!("/servers/{}", segment(id))), impossible, "{id}");
        }
    }
}
