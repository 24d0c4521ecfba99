//! The harness of the integration tests: the built programs, CPI jobs in temporary
//! directories, calls as the real clients make them, and hostile guests.
//!
//! Every response is checked against the clients' contract (`response`), so that
//! each test also tests the contract.

pub mod archive;
pub mod audit;
pub mod aws;
pub mod call;
pub mod client;
pub mod cloud;
pub mod codes;
pub mod dist;
pub mod elf;
pub mod gateway;
pub mod hostile;
pub mod job;
pub mod live_process;
pub mod lost_caller;
pub mod old_kernel;
pub mod openstack;
pub mod prepared_guest;
pub mod probe;
pub mod process;
pub mod registry;
pub mod registry_server;
pub mod release;
pub mod response;
pub mod rows;
pub mod servers;
pub mod signing;
mod simulation;
pub mod skip;
pub mod users;

pub use call::Call;
pub use job::Job;
pub use response::{CLOUD_ERROR, CPI_ERROR, NOT_IMPLEMENTED, NOT_SUPPORTED, Response};
pub use skip::skip;
