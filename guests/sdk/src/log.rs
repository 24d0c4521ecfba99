//! Lines for the log of the Director's task. The host limits, escapes and redacts
//! them. Write what happens to which object, not whole requests.
//!
//! ```
//! use wasm_cpi_sdk::{fake::Fake, log};
//!
//! let host = Fake::new().install();
//! let disk = "disk-1";
//! log::info(format_args!("disk {disk} is attached"));
//! assert_eq!(host.logs(), [(log::Level::Info, "disk disk-1 is attached".to_owned())]);
//! ```

use std::fmt::Display;

use crate::host;

pub use crate::bindings::bosh::cpi::log::Level;

/// Writes a line.
pub fn log(level: Level, message: impl Display) {
    host::current().log(level, &message.to_string());
}

/// Writes a line with details for the guest's author.
pub fn debug(message: impl Display) {
    log(Level::Debug, message);
}

/// Writes a line about normal progress.
pub fn info(message: impl Display) {
    log(Level::Info, message);
}

/// Writes a line about a problem that the guest could work around.
pub fn warn(message: impl Display) {
    log(Level::Warn, message);
}

/// Writes a line about a problem that needs an operator.
pub fn error(message: impl Display) {
    log(Level::Error, message);
}
