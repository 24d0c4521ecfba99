//! The only place that opens sockets.
//!
//! A guest's request passes `gate`, in this order: shape and size, `destination`
//! (the canonical URL), the policy's verdict, `headers`, `slots`, `resolve`,
//! `addresses`, `tls`, the grant's auth (`login`), `exchange`, `captures` with
//! the tripwire. The host's own requests go through `client`, with no policy
//! and no word from the guest. Nothing here exists before it is first needed.

pub mod captures;
pub mod client;
pub mod error;
mod event;
pub mod exchange;
pub mod gate;
mod headers;
mod held;
pub mod http_trace;
mod http_usage;
mod login;
#[cfg(feature = "holes")]
mod mutants;
mod own;
pub mod proxy;
mod reach;
pub mod resolve;
pub mod slots;
pub mod tls;

#[cfg(test)]
mod tests;
