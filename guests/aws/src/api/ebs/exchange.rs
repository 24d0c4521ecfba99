//! Sends a request of EBS direct, and repeats it while that can help.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use wasm_cpi_sdk::http::{Cause, Request, RequestError, Response};
use wasm_cpi_sdk::retry::{Repeat, Retry};

use crate::api::ApiError;
use crate::error::is_throttled;

/// The time in which a request is repeated.
const BUDGET: Duration = Duration::from_secs(3 * 60);

/// A request that failed.
pub(super) struct Failure {
    pub(super) error: ApiError,
    /// True if AWS may have carried out an earlier request, although there is no answer to it.
    pub(super) is_unclear: bool,
}

/// What the headers of a response say about its error.
#[derive(Clone, Debug, Default)]
struct Headers {
    code: Option<String>,
    request_id: Option<String>,
}

impl Headers {
    fn read(response: &Response) -> Self {
        // Some services add the URL of a description to the code.
        let code = response.header("x-amzn-errortype").and_then(|code| code.split(':').next());
        Self { code: code.map(str::to_owned), request_id: response.header("x-amzn-requestid").map(str::to_owned) }
    }
}

/// Sends a request that has the same effect if it is sent twice.
pub(super) fn send<T>(
    operation: &str,
    request: &Request,
    read: impl Fn(&Response) -> Result<T, RequestError>,
) -> Result<T, Failure> {
    let headers = RefCell::new(Headers::default());
    let is_unclear = Cell::new(false);
    let once = || {
        headers.take();
        let response = request.clone().send()?;
        headers.replace(Headers::read(&response));
        read(&response.ok()?)
    };
    let decide = |error: &RequestError| {
        let repeat = repeat(error, headers.borrow().code.as_deref().unwrap_or_default());
        is_unclear.set(is_unclear.get() || repeat == Repeat::Later && error.sent() && error.status() != Some(404));
        repeat
    };
    Retry::for_at_most(BUDGET).run(decide, once).map_err(|error| {
        let headers = headers.take();
        let error = ApiError::of_json(operation, error, headers.code.as_deref(), headers.request_id.as_deref());
        Failure { error, is_unclear: is_unclear.get() }
    })
}

fn repeat(error: &RequestError, code: &str) -> Repeat {
    if is_throttled(code, error.status()) {
        return Repeat::Throttled;
    }
    match &error.cause {
        // EBS may not know a new snapshot everywhere yet.
        Cause::Status { status: 404, .. } => Repeat::Later,
        Cause::Status { status, .. } if *status >= 500 => Repeat::Later,
        Cause::Transport { .. } => Repeat::Later,
        Cause::Status { .. } | Cause::Build(_) | Cause::Decode(_) => Repeat::Never,
    }
}
