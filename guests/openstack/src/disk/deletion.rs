//! Deletes volumes and snapshots, and waits until they do not exist any more.

use wasm_cpi_sdk::{Error, http, log};

use crate::api::retry_while_busy;
use crate::session::Session;

/// Deletes an object, and waits until it does not exist any more. It succeeds if the object does not exist.
/// `status` returns `None` when it does not exist any more.
pub(super) fn delete_and_wait(
    session: &Session,
    what: &str,
    delete: impl Fn() -> Result<bool, http::RequestError>,
    status: impl Fn() -> Result<Option<String>, http::RequestError>,
) -> Result<(), Error> {
    match retry_while_busy(delete) {
        Ok(true) => {}
        Ok(false) => {
            log::info(format_args!("{what} does not exist any more"));
            return Ok(());
        }
        // Cinder rejects a second request while the first one is in progress.
        Err(error) if status()?.is_some_and(|status| status != "deleting") => {
            return Err(error.context(format_args!("deleting {what}")));
        }
        Err(_) => {}
    }
    session.wait_until_certain(&format!("{what} to be deleted"), || match status()?.as_deref() {
        None => Ok(Some(())),
        Some("error_deleting") => Err(Error::cloud(format!(
            "{what} cannot be deleted: its status is `error_deleting`; ask the cloud's operator to reset its status, and \
             then repeat the task"
        ))),
        Some(_) => Ok(None),
    })
}
