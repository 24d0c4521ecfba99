//! From a guest's file to code that can run.
//!
//! `signature` knows who vouches for a guest; `source` reads the bytes and checks
//! the pin; `surface` looks at imports and needs before anything is compiled;
//! `compile` (tool only) compiles in a child process with limits; `cache` keeps
//! the result; `prepared` ties them together.

pub mod cache;
pub mod child;
#[cfg(feature = "compiler")]
pub mod compile;
pub mod description;
pub mod prepared;
pub mod signature;
pub mod source;
#[cfg(feature = "compiler")]
pub mod surface;
