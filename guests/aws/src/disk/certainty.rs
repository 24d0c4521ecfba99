//! Sends a request that has another effect if it is sent twice, until its outcome is certain. The answer to such a
//! request can get lost, and EC2 refuses requests for a while that it accepts later.

use wasm_cpi_sdk::Error;
use wasm_cpi_sdk::poll::Poll;

use super::STATE_TIMEOUT;
use crate::api::{ApiError, Query};

/// How often a request is sent whose outcome is unclear.
const MAX_UNCLEAR: usize = 5;

/// What the state of the cloud says after an error.
pub(super) enum Outcome {
    /// The request had its effect.
    Done,
    /// The request had no effect, and can be sent again.
    NotDone,
}

/// An error of a request.
pub(super) struct Refusal<'a> {
    pub(super) error: &'a ApiError,
    /// True if this request or one before it may have had its effect, although it has no answer.
    pub(super) is_unclear: bool,
}

/// Sends a request. After each error, `look` finds out what became of it, or returns a final error. `what` completes
/// the sentence "waiting for …".
pub(super) fn send(
    what: &str,
    request: &Query<()>,
    mut look: impl FnMut(&Refusal<'_>) -> Result<Outcome, Error>,
) -> Result<(), Error> {
    let (mut unclear, mut last) = (0, None);
    let outcome = Poll::for_at_most(STATE_TIMEOUT).with_jitter().until(what, || {
        let Err(error) = request.send() else { return Ok(Some(())) };
        let may_have_succeeded = error.may_have_succeeded();
        unclear += usize::from(may_have_succeeded);
        let outcome = look(&Refusal { error: &error, is_unclear: unclear > 0 }).inspect_err(|_| last = None)?;
        if matches!(outcome, Outcome::NotDone) && may_have_succeeded && unclear >= MAX_UNCLEAR {
            last = None;
            return Err(error.into());
        }
        last = Some(error);
        Ok(matches!(outcome, Outcome::Done).then_some(()))
    });
    // A wait that ends without a success has no error of its own to show.
    outcome.map_err(|error| match last {
        Some(last) => Error::new(error.kind, format!("{}; the last answer: {last}", error.message)),
        None => error,
    })
}
