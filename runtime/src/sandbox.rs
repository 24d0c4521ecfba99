//! The sandbox of one guest: engine, limits and early ends. `host` decides what it may import.
//!
//! `engine` has every setting of the engine with its reason; `meter`, `ending` and `watchdog`
//! bound what a guest uses; `stdio` is its standard output; `trap` explains why a guest stopped.

pub mod ending;
pub mod engine;
mod engine_limit;
pub mod meter;
pub mod stdio;
pub mod trap;
pub mod watchdog;
