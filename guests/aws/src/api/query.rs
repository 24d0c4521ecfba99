//! A request to a query API, with its reader and what a repetition of it would do.

use std::time::Duration;

use wasm_cpi_sdk::http::{self, Cause, Request, RequestError, Response};
use wasm_cpi_sdk::log;
use wasm_cpi_sdk::query_api::{self, Operation};
use wasm_cpi_sdk::retry::{Repeat, Retry};
use wasm_cpi_sdk::xml::{Element, XmlError};

use super::ApiError;
use crate::error::{is_capacity, is_internal, is_throttled};

/// The time in which a request is repeated.
const BUDGET: Duration = Duration::from_secs(3 * 60);

/// The most pages of a list: a server that always answers with another page must not keep the call busy.
const MAX_PAGES: usize = 1000;

/// The effect of sending a request twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The same as of sending it once: it reads, it has a token, or it sets a state.
    Same,
    /// Another one: the request is repeated only if AWS did not process it.
    Another,
}

/// A request that returns a `T`.
#[derive(Clone, Debug)]
pub(crate) struct Query<T> {
    url: String,
    operation: Operation,
    effect: Effect,
    /// The codes after which the request can succeed later.
    passing: &'static [&'static str],
    budget: Duration,
    change: Option<Change<T>>,
    read: fn(&Element) -> Result<T, XmlError>,
}

/// The line for the log about a request that changes something: a text, and the name of what the request created.
#[derive(Clone, Debug)]
struct Change<T> {
    text: String,
    name: fn(&T) -> String,
}

impl<T> Query<T> {
    /// Returns a request that has the same effect if it is sent twice.
    pub(crate) fn repeatable(url: &str, operation: Operation, read: fn(&Element) -> Result<T, XmlError>) -> Self {
        Self { url: url.to_owned(), operation, effect: Effect::Same, passing: &[], budget: BUDGET, change: None, read }
    }

    /// Returns a request that has another effect if it is sent twice.
    pub(crate) fn once(url: &str, operation: Operation, read: fn(&Element) -> Result<T, XmlError>) -> Self {
        Self { effect: Effect::Another, ..Self::repeatable(url, operation, read) }
    }

    /// Repeats the request after these errors: for example, what was just created may not be known everywhere.
    #[must_use]
    pub(crate) fn passing(mut self, codes: &'static [&'static str]) -> Self {
        self.passing = codes;
        self
    }

    /// Sets the time in which the request is repeated.
    #[must_use]
    pub(crate) fn for_at_most(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Logs one line when the request has created something: the text and the name of what it created.
    #[must_use]
    pub(crate) fn creates(mut self, text: impl Into<String>, name: fn(&T) -> String) -> Self {
        self.change = Some(Change { text: text.into(), name });
        self
    }

    /// Logs this line when the request has changed something.
    #[must_use]
    pub(crate) fn changes(self, text: impl Into<String>) -> Self {
        self.creates(text, |_| String::new())
    }

    /// Sends the request, and repeats it while that can help.
    pub(crate) fn send(&self) -> Result<T, ApiError> {
        self.finish(None)
    }

    /// Returns the request for a batch.
    pub(super) fn request(&self) -> Request {
        http::post(self.url.clone()).operation(&self.operation)
    }

    /// Continues after a first answer, if there is one, as [`Query::send`] does.
    pub(super) fn finish(&self, mut first: Option<Result<Response, RequestError>>) -> Result<T, ApiError> {
        let send = || {
            let response = first.take().unwrap_or_else(|| self.request().send());
            response?.ok()?.xml(self.read)
        };
        let retry = Retry::for_at_most(self.budget);
        let outcome = retry.run(|error| self.repeat(error), send);
        if let (Ok(done), Some(Change { text, name })) = (&outcome, &self.change) {
            log::info(format!("{text} {}", name(done)).trim_end());
        }
        outcome.map_err(|error| ApiError::new(self.operation.action(), error))
    }

    /// Decides whether the request is sent again after an error.
    fn repeat(&self, error: &RequestError) -> Repeat {
        let code = query_api::error_code(error).unwrap_or_default();
        if is_throttled(&code, error.status()) {
            return Repeat::Throttled;
        }
        if self.passing.contains(&&*code) {
            return Repeat::Later;
        }
        let is_unclear = match &error.cause {
            Cause::Status { status, .. } => is_internal(&code) || (*status >= 500 && !is_capacity(&code)),
            Cause::Transport { .. } => true,
            Cause::Build(_) | Cause::Decode(_) => false,
        };
        if is_unclear && (self.effect == Effect::Same || !error.sent()) { Repeat::Later } else { Repeat::Never }
    }
}

impl<T> Query<Vec<T>> {
    /// Sends the request for each page of a list, and returns all elements.
    pub(crate) fn send_for_all_pages(&self) -> Result<Vec<T>, ApiError> {
        let (mut all, mut token) = (vec![], None);
        for _ in 0..MAX_PAGES {
            let page = Query {
                url: self.url.clone(),
                operation: self.operation.clone().set("NextToken", &token),
                effect: self.effect,
                passing: self.passing,
                budget: self.budget,
                change: None,
                read: |page: &Element| Ok((page.clone(), page.text("nextToken").map(str::to_owned))),
            };
            let (answer, next) = page.send()?;
            all.extend((self.read)(&answer).map_err(|error| self.unreadable(&error))?);
            match next {
                Some(next) if token.as_ref() != Some(&next) => token = Some(next),
                _ => return Ok(all),
            }
        }
        Ok(all)
    }

    fn unreadable(&self, error: &XmlError) -> ApiError {
        let cause = Cause::Decode(format!("the response's body: {error}"));
        let request = format!("POST {} ({})", self.url, self.operation.action());
        ApiError::new(self.operation.action(), RequestError { request, cause })
    }
}
