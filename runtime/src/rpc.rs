//! The Director's protocol: one JSON request in, one JSON response out.
//!
//! The only place that knows the wire. `request` turns bytes into a typed call,
//! `arguments` reads what each method takes, `shape` converts
//! between JSON and the guest's types, `answer` gives a result the form that the
//! caller's API version wants, `response` writes. No IO here.

pub mod answer;
pub mod arguments;
pub mod method;
pub mod request;
pub mod response;
pub mod shape;

/// The newest CPI API version that the runtime speaks.
pub const API_VERSION: u32 = 3;
