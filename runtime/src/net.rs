//! The only place that opens sockets.
//!
//! A guest's request passes `gate`, in this order: shape and size, the canonical
//! URL (`Destination`), the policy's verdict, `headers`, `slots`, the addresses
//! (`transport` with `resolver`), the grant's credentials (`gate::auth`, for which
//! `login` obtains a token if needed), `tls` and `proxy` (again `transport`),
//! `exchange`, `cleaning`, and `captures` with the tripwire. The host's own requests use
//! `client`, without a policy, and nothing in them comes from a guest. Sockets,
//! certificates and name servers are set up when they are first needed.

pub mod captures;
pub mod cleaning;
pub mod client;
mod connection;
pub mod connections;
mod creations;
pub mod error;
pub mod exchange;
pub mod gate;
mod headers;
mod http_event;
pub mod http_trace;
mod http_usage;
mod local_addresses;
mod login;
mod method_override;
#[cfg(feature = "mutation-testing")]
mod mutants;
mod preopened;
pub mod proxy;
pub mod resolver;
pub mod slots;
pub mod tls;
mod transport;

#[cfg(test)]
mod tests;
