//! Sends several requests at once.

use super::retries::Retries;
use super::{Request, RequestError, Response};
use crate::bindings::bosh::cpi::http as wire;
use crate::{clock, host};

/// Sends requests that do not depend on each other, up to eight at once, and returns
/// their outcomes in the same order. Requests with [`Request::retries`] are repeated
/// together, after the longest of their pauses.
///
/// ```
/// use wasm_cpi_sdk::fake::{Answer, Fake};
/// use wasm_cpi_sdk::{Error, http};
///
/// fn exist(ids: &[&str]) -> Result<Vec<bool>, Error> {
///     let requests = ids.iter().map(|id| http::get(format!("https://cloud.example/vms/{id}")));
///     http::send_all(requests).into_iter().map(|vm| Ok(vm?.found()?.is_some())).collect()
/// }
///
/// let _host = Fake::new()
///     .on("GET", "https://cloud.example/vms/a", Answer::text(200, "{}"))
///     .on("GET", "https://cloud.example/vms/b", Answer::text(404, ""))
///     .install();
/// assert_eq!(exist(&["a", "b"]).unwrap(), [true, false]);
/// ```
pub fn send_all(requests: impl IntoIterator<Item = Request>) -> Vec<Result<Response, RequestError>> {
    let mut outcomes: Vec<Option<Result<Response, RequestError>>> = vec![];
    let (mut wires, mut pending): (Vec<wire::Request>, Vec<(usize, Retries)>) = (vec![], vec![]);
    for (index, request) in requests.into_iter().enumerate() {
        outcomes.push(None);
        match request.build() {
            Ok((wire, retries)) => {
                wires.push(wire);
                pending.push((index, retries));
            }
            Err(error) => outcomes[index] = Some(Err(error)),
        }
    }
    while !wires.is_empty() {
        let answers = host::current().http_send_all(&wires);
        let (mut wires_again, mut pending_again, mut again) = (vec![], vec![], vec![]);
        for ((wire, (index, mut retries)), answer) in wires.into_iter().zip(pending).zip(answers) {
            let retry = retries.next(&answer);
            outcomes[index] = Some(retries.finish(answer));
            if let Some(retry) = retry {
                wires_again.push(wire);
                pending_again.push((index, retries));
                again.push(retry);
            }
        }
        (wires, pending) = (wires_again, pending_again);
        let Some(longest) = again.iter().map(|retry| retry.pause).max() else { break };
        for (retry, (_, retries)) in again.iter().zip(&pending) {
            retries.log(retry, longest);
        }
        // A sleep fails if the call is ending: the outcomes stay as they are.
        if clock::sleep(longest).is_err() {
            break;
        }
    }
    let answered = |outcome: Option<_>| outcome.expect("the host returns an answer to each request");
    outcomes.into_iter().map(answered).collect()
}
