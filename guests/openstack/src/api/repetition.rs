//! Repeats requests safely. A request that creates an object must not create two.
//! If its answer is lost, the object is searched by its unique name: it is used
//! if it exists, and the request is never sent twice.

use std::time::Duration;

use wasm_cpi_sdk::http::{Cause, RequestError, TransportError};
use wasm_cpi_sdk::{Error, clock, log};

/// How long to search for an object after its answer was lost.
const SEARCH: Duration = Duration::from_secs(10);
/// The same after an answer of the service itself, which has finished by then.
const SEARCH_AFTER_ANSWER: Duration = Duration::from_secs(2);
/// The maximum number of searches when the call is ending and sleeps fail.
const SEARCHES_WITHOUT_SLEEP: u32 = 100;

/// The number of attempts to change an object, and how long to check for the change
/// after the first one. Each check is twice as long as the one before.
const CHANGE_ATTEMPTS: u32 = 4;
const CHANGE_CHECK: Duration = Duration::from_secs(2);

/// The number of attempts if the cloud answers 409 because the object is busy.
const BUSY_ATTEMPTS: u32 = 6;

/// Returns true if the cloud may have processed the request although it failed.
pub(crate) fn may_have_succeeded(error: &RequestError) -> bool {
    match &error.cause {
        Cause::Build(_) => false,
        Cause::Transport { kind: TransportError::Denied(_), .. } => false,
        Cause::Transport { sent, .. } => *sent,
        Cause::Status { status, .. } => *status >= 500,
        Cause::Decode(_) => true,
    }
}

/// Adds a detail to the message of an error.
pub(crate) fn with_detail(mut error: RequestError, more: &str) -> RequestError {
    match &mut error.cause {
        Cause::Build(text) | Cause::Decode(text) | Cause::Transport { message: text, .. } => {
            text.push_str(&format!("; {more}"));
        }
        Cause::Status { text, .. } => {
            *text = Some(text.take().map_or_else(|| more.to_owned(), |said| format!("{said}; {more}")));
        }
    }
    error
}

/// Creates an object: sends `post` once. If the object may exist although the
/// request failed, `find` searches for it. Returns the error of the request if it
/// is not found. `what` has the name or ID by which people can search for it.
pub(crate) fn create_once<T>(
    what: &str,
    post: impl FnOnce() -> Result<T, RequestError>,
    find: impl FnMut() -> Result<Option<T>, RequestError>,
) -> Result<T, RequestError> {
    let error = match post() {
        Err(error) if may_have_succeeded(&error) => error,
        outcome => return outcome,
    };
    log::warn(format_args!("{error}; checking whether {what} was created"));
    // A proxy answers although the service may still be working on the request.
    let by_proxy = matches!(error.status(), None | Some(502 | 504));
    let within = if by_proxy { SEARCH } else { SEARCH_AFTER_ANSWER };
    match find_within(within, find) {
        Ok(Some(found)) => {
            log::info(format_args!("{what} was created"));
            Ok(found)
        }
        Ok(None) => Err(error),
        Err(lookup) => {
            let more =
                format!("it is not certain whether {what} was created, because searching for it failed: {lookup}");
            log::error(&more);
            Err(with_detail(error, &more))
        }
    }
}

/// Requests a change of an object. If the answer is lost or the object is busy,
/// `done` checks whether the change happens; otherwise the request is sent again.
pub(crate) fn request_change(
    what: &str,
    send: impl Fn() -> Result<(), RequestError>,
    done: impl Fn() -> Result<bool, RequestError>,
) -> Result<(), RequestError> {
    let (mut left, mut within) = (CHANGE_ATTEMPTS, CHANGE_CHECK);
    loop {
        left -= 1;
        let error = match send() {
            Err(error) if may_have_succeeded(&error) || error.status() == Some(409) => error,
            outcome => return outcome,
        };
        log::warn(format_args!("{error}; checking whether {what}"));
        if find_within(within, || Ok(done()?.then_some(())))?.is_some() {
            return Ok(());
        }
        within *= 2;
        if left == 0 || clock::ending().is_some() {
            return Err(error);
        }
    }
}

/// Searches for an object that may appear. It also searches when the call is
/// ending and sleeps fail.
pub(crate) fn find_within<T>(
    within: Duration,
    mut find: impl FnMut() -> Result<Option<T>, RequestError>,
) -> Result<Option<T>, RequestError> {
    let start = clock::monotonic();
    let (mut pause, mut rounds) = (Duration::from_millis(500), 0);
    loop {
        if let Some(found) = find()? {
            return Ok(Some(found));
        }
        rounds += 1;
        if clock::monotonic().saturating_sub(start) >= within {
            return Ok(None);
        }
        if clock::sleep(pause).is_err() && rounds >= SEARCHES_WITHOUT_SLEEP {
            return Ok(None);
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Repeats a request, with growing pauses, while the cloud answers 409 because the
/// object is busy.
pub(crate) fn retry_while_busy<T>(mut send: impl FnMut() -> Result<T, RequestError>) -> Result<T, Error> {
    let mut pause = Duration::from_secs(1);
    for _ in 1..BUSY_ATTEMPTS {
        match send() {
            Err(error) if error.status() == Some(409) => {
                log::debug(format_args!("{error}; retrying in {} s", pause.as_secs()));
                if clock::sleep(pause).is_err() {
                    return Err(error.into());
                }
            }
            outcome => return outcome.map_err(Error::from),
        }
        pause *= 2;
    }
    send().map_err(Error::from)
}
