//! The Director's protocol: one JSON request and one JSON response.
//!
//! Only this module knows the protocol. `request` parses the envelope, `arguments` types the
//! arguments of each method, `shape` converts between JSON and the guest's types, `answer` gives
//! a result the form of the caller's API version, and `response` writes the document. Nothing
//! here does IO.

pub mod answer;
pub mod arguments;
pub mod conversion;
pub mod method;
pub mod request;
pub mod response;

/// The newest CPI API version that the runtime supports.
pub const API_VERSION: u32 = 3;
