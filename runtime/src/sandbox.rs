//! One guest, one store, one call.
//!
//! `engine` has every setting of the sandbox with its reason; `wasi` the fixed
//! list of what a guest may import beyond our own world; `limits`, `ending` and
//! `ticker` bound what it uses; `call` runs a method; `trap` explains what went
//! wrong.

pub mod call;
pub mod ending;
pub mod engine;
pub mod limits;
pub mod state;
pub mod stdio;
pub mod ticker;
pub mod trap;
pub mod wasi;
