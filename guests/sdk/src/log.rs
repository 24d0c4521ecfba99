//! Lines for the Director's task log. The host bounds, escapes and redacts
//! them; say what happens to which thing, not whole requests.

use std::fmt::Display;

use crate::host;

pub use crate::bindings::bosh::cpi::log::Level;

pub fn log(level: Level, message: impl Display) {
    host::current().log(level, &message.to_string());
}

pub fn debug(message: impl Display) {
    log(Level::Debug, message);
}

pub fn info(message: impl Display) {
    log(Level::Info, message);
}

pub fn warn(message: impl Display) {
    log(Level::Warn, message);
}

pub fn error(message: impl Display) {
    log(Level::Error, message);
}
