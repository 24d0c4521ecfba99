//! Words what operators read about a leak: a response or a result that held a credential.
//!
//! Each function returns a sentence without a full stop. The callers join sentences with `; `.

use std::fmt;

/// What an operator does about a response or a result that holds a credential.
pub const REMEDY: &str = "remove its place from responses with `drop` of the grant, or replace it by a seal with \
                          `captures`; list it under `expose` only if it is not a secret";

/// Says that something was withheld, and what to do.
pub fn withheld(place: &str, secret: &str, remedy: &str) -> String {
    format!("{place} was withheld, because it holds the credential `{secret}`; {remedy}")
}

/// Says that a response was withheld, because another call of the guest leaked.
pub fn withheld_after(place: &str, secret: &str) -> String {
    format!("{place} held the credential `{secret}`, so this response was withheld")
}

/// Says that a call was ended.
pub fn ended_call(place: &str, secret: &str) -> String {
    format!("{place} held the credential `{secret}` and was withheld, so the call was ended")
}

/// Says that calls of a guest are refused, and how they are allowed again. `at` is the time and `method` the call of
/// the leak.
pub fn refused_call(place: &str, secret: &str, method: &str, at: &str, command: &str) -> String {
    format!(
        "{place} held the credential `{secret}` in an earlier call of this guest (`{method}`, {at}), so its calls are \
         refused; look at its requests in the audit log, and then run `{command}`"
    )
}

/// Says what follows for later calls if the leak is recorded.
pub fn further_calls_refused(command: &str) -> String {
    format!("further calls of this guest are refused until you have looked at this and run `{command}`")
}

/// Says what follows for later calls if the leak could not be recorded.
pub fn not_recorded(error: &dyn fmt::Display) -> String {
    let remedy = "make the cache directory writable";
    format!("this leak could not be recorded ({error}), so later calls are not refused; {remedy}")
}
