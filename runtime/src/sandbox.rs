//! The sandbox of one guest: engine, limits and early ends. `host` decides what it may import.
//!
//! `engine` has every setting of the engine with its reason; `meter`, `call_clock` and
//! `watchdog` bound what a guest uses; `stdio` is its standard output; `trap` explains why a guest
//! stopped, and `engine_limit` recognises limits of the engine in its errors.

pub mod call_clock;
pub mod engine;
mod engine_limit;
pub mod meter;
#[cfg(feature = "mutation-testing")]
mod mutants;
pub mod stdio;
pub mod trap;
pub mod watchdog;
