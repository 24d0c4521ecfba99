//! One call of the Director, from the request to the response:
//! receive → load → authorise → assemble → execute → settle → respond.
//!
//! If the response cannot be delivered, `undo` deletes what the call created.
//!
//! Each step is one function in a file of its own. It takes the value of the step
//! before and returns the value for the next one, or the one error type that all of
//! them share. `commands::run` and `commands::call` put the steps together.

mod assemble;
mod authorise;
mod error;
mod execute;
mod explanation;
mod invoke;
mod leak;
mod load;
mod observe;
mod receive;
mod record;
mod respond;
mod settle;
mod undo;

pub use assemble::assemble;
pub use authorise::authorise;
pub use error::CallError;
pub use execute::execute;
pub use leak::leak_refusal;
pub use load::{Loaded, find_method, load};
pub use observe::{Observed, Observer};
pub use receive::receive;
pub use record::Record;
pub use respond::{Response, respond};
pub use settle::{Settled, settle};

/// Leaves a value to the end of the process, which follows the call. Dropping it would only delay the response.
fn leave_to_exit<T>(value: T) {
    std::mem::forget(value);
}
