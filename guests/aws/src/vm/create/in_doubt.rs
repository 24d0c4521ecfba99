//! Requests that may have created something although their answers got lost.

use std::time::Duration;

use wasm_cpi_sdk::{Error, clock, random};

use crate::api::{ApiError, Query};
use crate::error::{is_throttled, refuses_caller};

/// How long the repetition of such a request may take.
const REPEAT_BUDGET: Duration = Duration::from_secs(30);

/// The pauses of the search for what it created.
const SEARCH_PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
];

/// A request with a token.
pub(super) struct InDoubt<T> {
    pub(super) token: String,
    pub(super) request: Query<T>,
}

impl<T> InDoubt<T> {
    /// Returns what the request created. The error, which begins with `what`, says that this is not known.
    pub(super) fn resolve<F>(
        self,
        what: &str,
        search: &Query<Vec<F>>,
        id_of_created: fn(T) -> String,
        id_of_found: impl Fn(F) -> Option<String>,
    ) -> Result<Vec<String>, Error> {
        let what = format!("{what} with the client token {} may exist", self.token);
        // With the same token, EC2 returns what exists already. A call that is ending must not create anything.
        if clock::ending().is_none() {
            match self.request.for_at_most(REPEAT_BUDGET).send() {
                Ok(created) => return Ok(vec![id_of_created(created)]),
                Err(error) if is_refusal(&error) => return Ok(vec![]),
                Err(_) => {}
            }
        }
        for pause in SEARCH_PAUSES {
            let found = search.send().map_err(|error| Error::from(error).context(&what))?;
            let found: Vec<String> = found.into_iter().filter_map(&id_of_found).collect();
            if !found.is_empty() {
                return Ok(found);
            }
            // EC2 may not show at once what was just created.
            let slept = clock::sleep(random::jittered(pause));
            slept.map_err(|error| Error::cloud(format!("{what}: EC2 does not show it yet ({error})")))?;
        }
        Err(Error::cloud(format!("{what}: its creation had no clear answer, and EC2 does not show it")))
    }
}

/// Returns true if EC2 refuses to create with these parameters, so that it did not create before either.
fn is_refusal(error: &ApiError) -> bool {
    error.code.is_some()
        && !error.may_have_succeeded()
        && !is_throttled(error.code(), error.status())
        && !refuses_caller(error.code())
        && !error.code().ends_with(".InUse")
}
