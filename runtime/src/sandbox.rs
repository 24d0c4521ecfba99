//! What holds one guest: engine, limits and endings. What it may import is `host`.
//!
//! `engine` has every setting of the sandbox with its reason; `meter`, `ending` and
//! `watchdog` bound what a guest uses; `stdio` is its standard output; `trap` explains
//! what went wrong.

pub mod ending;
pub mod engine;
mod engine_limit;
pub mod meter;
pub mod stdio;
pub mod trap;
pub mod watchdog;
