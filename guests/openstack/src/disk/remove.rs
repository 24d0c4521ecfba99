//! Deletes volumes and snapshots, which go slowly, until they are gone for
//! certain.

use wasm_cpi_sdk::{Error, http};

use crate::api::patiently;
use crate::session::Session;

/// `status` is `None` for one that is gone.
pub(super) fn remove(
    session: &Session,
    what: &str,
    delete: impl Fn() -> Result<bool, http::Error>,
    status: impl Fn() -> Result<Option<String>, http::Error>,
) -> Result<(), Error> {
    if let Err(error) = patiently(delete)
        // What was asked for twice is refused the second time while it goes on.
        && status()?.is_some_and(|status| status != "deleting")
    {
        return Err(error.context(format_args!("deleting {what}")));
    }
    session.certainly(&format!("{what} to be gone"), || match status()?.as_deref() {
        None => Ok(Some(())),
        Some("error_deleting") => Err(Error::cloud(format!("{what} cannot be deleted: its state is `error_deleting`"))),
        Some(_) => Ok(None),
    })
}
