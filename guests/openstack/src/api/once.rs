//! Requests that make something, and must not make two of it. When the answer
//! is lost, the thing is looked for by the name that only it can have: it is
//! used if it is there, and nothing is sent twice.

use std::time::Duration;

use wasm_cpi_sdk::http::{Cause, Error, ErrorKind};
use wasm_cpi_sdk::{Error as CpiError, clock, log};

/// How long to look for what a lost answer may have made.
const LOOK: Duration = Duration::from_secs(10);
/// After an answer of the service itself: what it made, if anything, is there.
const LOOK_AFTER_ANSWER: Duration = Duration::from_secs(2);
/// How often to look at most where sleeping is over because the call is ending.
const LOOKS_AT_THE_END: u32 = 100;

/// How often to ask for what gets lost or meets something busy, and how long to
/// look after the first time; each next look is twice as long.
const INSIST_TRIES: u32 = 4;
const INSIST_LOOK: Duration = Duration::from_secs(2);

/// How often to ask again for what a busy thing refuses with 409.
const BUSY_TRIES: u32 = 6;

/// Whether the request may have been carried out although it failed.
pub(crate) fn unclear(error: &Error) -> bool {
    match &error.cause {
        Cause::Build(_) => false,
        Cause::Transport { kind: ErrorKind::Denied(_), .. } => false,
        Cause::Transport { sent, .. } => *sent,
        Cause::Status { status, .. } => *status >= 500,
        Cause::Decode(_) => true,
    }
}

/// Says more in an error.
pub(crate) fn with(mut error: Error, more: &str) -> Error {
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

/// Sends `post` once. If it stays unclear what came of it, `find` looks for the
/// result; the error is the request's if there is none. `what` has the name or
/// id by which people can look for it as well.
pub(crate) fn once<T>(
    what: &str,
    post: impl FnOnce() -> Result<T, Error>,
    find: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let error = match post() {
        Err(error) if unclear(&error) => error,
        outcome => return outcome,
    };
    log::warn(format_args!("{error}; looking whether {what} was made"));
    // A proxy answers for a service that may still be at it.
    let by_proxy = matches!(error.status(), None | Some(502 | 504));
    let within = if by_proxy { LOOK } else { LOOK_AFTER_ANSWER };
    match look(within, find) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(error),
        Err(lookup) => {
            let more = format!("it is not certain whether {what} was made, as looking for it failed: {lookup}");
            log::error(&more);
            Err(with(error, &more))
        }
    }
}

/// Asks for a change of something. When the answer is lost, or the thing is busy,
/// `done` tells whether it happens: only then it is not asked for again.
pub(crate) fn insist(
    what: &str,
    send: impl Fn() -> Result<(), Error>,
    done: impl Fn() -> Result<bool, Error>,
) -> Result<(), Error> {
    let (mut left, mut within) = (INSIST_TRIES, INSIST_LOOK);
    loop {
        left -= 1;
        let error = match send() {
            Err(error) if unclear(&error) || error.status() == Some(409) => error,
            outcome => return outcome,
        };
        log::warn(format_args!("{error}; looking whether {what}"));
        if look(within, || Ok(done()?.then_some(())))?.is_some() {
            return Ok(());
        }
        within *= 2;
        if left == 0 || clock::ending().is_some() {
            return Err(error);
        }
    }
}

/// Looks for something that may appear. Also at the end of a call, when there
/// are no pauses any more.
pub(crate) fn look<T>(
    within: Duration,
    mut find: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
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
        if clock::sleep(pause).is_err() && rounds >= LOOKS_AT_THE_END {
            return Ok(None);
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Repeats what the cloud refuses with 409 because something else goes on with
/// the same thing, with growing pauses.
pub(crate) fn patiently<T>(mut send: impl FnMut() -> Result<T, Error>) -> Result<T, CpiError> {
    let mut pause = Duration::from_secs(1);
    for _ in 1..BUSY_TRIES {
        match send() {
            Err(error) if error.status() == Some(409) => {
                log::debug(format_args!("{error}; trying again in {} s", pause.as_secs()));
                if clock::sleep(pause).is_err() {
                    return Err(error.into());
                }
            }
            outcome => return outcome.map_err(CpiError::from),
        }
        pause *= 2;
    }
    send().map_err(CpiError::from)
}
