//! The only place that opens sockets.
//!
//! A guest's request passes `gate`, in this order: shape and size, the canonical
//! URL (`Destination`), the policy's verdict, `headers`, `slots`, `addresses` with
//! `resolver`, the grant's credentials (`gate::auth`, for which `login` obtains a token,
//! or `credentials` the keys for `signing`, if needed), `transport` with `tls_configs`, `proxy` and `connection_pool`,
//! `exchange`, and the steps of `response` up to the tripwire. The host's own requests use
//! `client`, without a policy, and nothing in them comes from a guest. Sockets,
//! certificates and name servers are set up when they are first needed.
//!
//! Each stage of a request, and of its response, has its own type:
//!
//! 1. `gate::GuestRequest`: the request as the guest wrote it.
//! 2. `gate::message::ParsedRequest`: a request whose form and size are valid.
//! 3. `gate::GrantedRequest`: method and destination of a request that the policy allows, and the grant.
//! 4. `slots::RequestToFill`: the headers and the body in which secrets replace seals.
//! 5. `gate::sending::CheckedRequest`: a request that passed every check except the one on addresses.
//! 6. `exchange::WireRequest`: the request with its credentials, as it is sent.
//! 7. `exchange::Exchange`: a `WireRequest` with the addresses, proxy, TLS settings and limits to send it with.
//! 8. `exchange::Received`: the complete response as the server sent it.
//! 9. `response::ResponseInScreening`: the response while secrets are removed from it.
//! 10. `gate::GuestResponse`: the response as the guest gets it.

mod addresses;
pub mod client;
mod connection;
pub mod connection_pool;
mod creations;
mod credentials;
pub mod error;
pub mod exchange;
mod exposure;
pub mod gate;
mod headers;
mod http_event;
mod http_record;
pub mod http_trace;
mod kept_secrets;
mod local_addresses;
mod login;
mod method_override;
#[cfg(feature = "mutation-testing")]
mod mutants;
mod preopened;
pub mod proxy;
pub mod resolver;
pub mod response;
mod signing;
pub mod slots;
pub mod tls;
mod tls_configs;
mod transport;

#[cfg(test)]
mod tests;
