//! Turns a guest's file into code that can run.
//!
//! `signature` verifies who signed a guest; `source` reads the bytes and checks the pin; `stamp` shows
//! without reading whether a file has changed; `declarations` checks imports and needs before
//! compilation; `child` starts the process in which `compile` (tool only) compiles with limits, and
//! `panic_report` reports its panics; `compile_lock` lets one process at a time compile; `cache` stores
//! the result; `description` holds what a guest says about itself; `digest` writes digests;
//! `preparation` combines these steps.

pub mod cache;
pub mod child;
#[cfg(feature = "compiler")]
pub mod compile;
mod compile_lock;
#[cfg(feature = "compiler")]
pub mod declarations;
pub mod description;
pub mod digest;
#[cfg(feature = "compiler")]
mod panic_report;
pub mod preparation;
pub mod signature;
pub mod source;
pub mod stamp;
