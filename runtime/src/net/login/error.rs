//! The errors of logins, as guests may see them.

use crate::net::error::{HttpError, HttpErrorKind};
use wasm_cpi_checks::Check;
use wasm_cpi_policy::{DenialReason, Login};

/// Returns the error of a failed login as the guest may see it: its kind and fixed words. What the
/// server said, the login's URL and addresses are in the detail. The guest's own request has not
/// been sent.
pub(super) fn error_for_guest(login: &Login, error: HttpError) -> HttpError {
    let message = Check::LoginPlace.choose(message_without_destination(&login.name, &error), error.explained());
    let detail = match error.kind {
        // This text names the login and its destination itself.
        HttpErrorKind::Denied(DenialReason::Address) => error.explained(),
        _ => format!("login `{}`, {} {}: {}", login.name, login.method, login.destination, error.explained()),
    };
    HttpError { message, detail, sent: false, login: Some(login.name.as_str().into()), ..error }
}

fn message_without_destination(login: &str, error: &HttpError) -> String {
    let who = error.who;
    match error.kind {
        HttpErrorKind::Denied(DenialReason::Address) => {
            format!(
                "policy: login `{login}` may not reach the address of its server; the log, and the end of the call's \
                 error, name that address and what to do"
            )
        }
        HttpErrorKind::Limit(limit) => {
            format!("limit: login `{login}` reached `{limit}`; raise `limits.{limit}` if that is legitimate")
        }
        // No login was refused, and its text names no place.
        _ if error.check == Some(Check::LoginRenewal) => error.message.clone(),
        HttpErrorKind::Denied(DenialReason::Credential) => {
            format!("{who}: login `{login}` was refused; check the properties that it takes its credentials from")
        }
        kind => format!("{who}: login `{login}` failed ({kind}); the log says where and why"),
    }
}
