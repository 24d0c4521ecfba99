//! One service of the cloud: its URL, and requests to it. Ids come from
//! outside: callers build paths of `http::segment`s.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wasm_cpi_sdk::http::{self, Denial, Error, Request, Response};

use super::with;
use crate::session::Kind;

/// How often a request that may be repeated is repeated: pauses of 1 to 8
/// seconds, or what the cloud asks for.
const RETRIES: u32 = 4;

pub(crate) struct Service {
    kind: Kind,
    url: String,
    /// Whether the operator's property says the same as the catalog.
    is_set: bool,
}

impl Service {
    /// `set` is what the property for this service says.
    pub(crate) fn new(kind: Kind, url: &str, set: Option<&str>) -> Self {
        let is_set = set.is_some_and(|set| set.trim_end_matches('/') == url);
        Self { kind, url: url.to_owned(), is_set }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Sends it, with retries where that is safe. A denial names the property
    /// that lets the request through, if it is that property's doing.
    pub(super) fn send(&self, request: Request) -> Result<Response, Error> {
        // Glance would send a page where something is wrong.
        let sent = request.header("accept", "application/json").retries(RETRIES).send();
        sent.map_err(|error| match error.denial() {
            Some(Denial::Undeclared | Denial::Scheme | Denial::Host | Denial::Port | Denial::Path) if !self.is_set => {
                let (name, url) = (self.kind.name(), &self.url);
                with(error, &format!("set the property `endpoints.{name}` to `{url}`, as in the catalog"))
            }
            _ => error,
        })
    }

    /// `None` if the service says that there is no such thing. A proxy that
    /// knows no such page says nothing about things.
    fn found(&self, response: Response) -> Result<Option<Response>, Error> {
        let own_words = response.json::<Map<String, Value>>().is_ok();
        match response.ok() {
            Ok(response) => Ok(Some(response)),
            Err(error) if error.is_not_found() && own_words => Ok(None),
            Err(error) if error.is_not_found() => {
                let (name, url) = (self.kind.name(), &self.url);
                Err(with(error, &format!("that is no answer of the {name} service: is `{url}` its URL?")))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn read<T: DeserializeOwned>(&self, request: Request) -> Result<T, Error> {
        self.send(request)?.ok()?.json()
    }

    /// `None` for what is not there.
    pub(super) fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Error> {
        if names_nothing(path) {
            return Ok(None);
        }
        self.found(self.send(http::get(self.url(path)))?)?.map(|response| response.json()).transpose()
    }

    pub(super) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        self.read(http::post(self.url(path)).json(body))
    }

    /// A POST whose answer says nothing.
    pub(super) fn act(&self, path: &str, body: &impl Serialize) -> Result<(), Error> {
        self.send(http::post(self.url(path)).json(body))?.ok().map(drop)
    }

    /// The same for a POST that may happen twice.
    pub(super) fn repeat(&self, path: &str, body: &impl Serialize) -> Result<(), Error> {
        self.send(http::post(self.url(path)).repeatable().json(body))?.ok().map(drop)
    }

    pub(super) fn put(&self, path: &str, body: &impl Serialize) -> Result<(), Error> {
        self.send(http::put(self.url(path)).json(body))?.ok().map(drop)
    }

    /// Whether it was there.
    pub(super) fn delete(&self, path: &str) -> Result<bool, Error> {
        if names_nothing(path) {
            return Ok(false);
        }
        Ok(self.found(self.send(http::delete(self.url(path)))?)?.is_some())
    }
}

/// An id from outside that would make another path of it, or that the host
/// refuses to send: nothing is called so.
fn names_nothing(path: &str) -> bool {
    let slash = |part: &str| ["%2F", "%5C"].iter().any(|code| part.to_ascii_uppercase().contains(code));
    path.split('/').skip(1).any(|part| matches!(part, "" | "." | "..") || slash(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_cpi_sdk::http::segment;

    #[test]
    fn ids_that_would_be_other_paths_name_nothing() {
        for (id, nothing) in [
            ("", true),
            (".", true),
            ("..", true),
            ("../flavors", true),
            ("a\\b", true),
            ("a b?c", false),
            ("a-1", false),
        ] {
            assert_eq!(names_nothing(&format!("/servers/{}", segment(id))), nothing, "{id}");
        }
    }
}
