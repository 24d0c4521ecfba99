//! What the integration tests are made of: the built binaries, CPI jobs in
//! temporary directories, calls as the real clients make them, and hostile
//! guests.
//!
//! Every call through here is held to the clients' contract (`response`), so
//! that each test is a test of it, whatever else it is about.

pub mod archive;
pub mod audit;
pub mod call;
pub mod client;
pub mod cloud;
pub mod dist;
pub mod elf;
pub mod hostile;
pub mod job;
pub mod lacking;
pub mod living;
pub mod openstack;
pub mod prepared;
pub mod probe;
pub mod process;
pub mod registry;
pub mod registry_server;
pub mod release;
pub mod response;
pub mod rows;
pub mod servers;
pub mod signing;
pub mod skip;
pub mod users;

pub use call::Call;
pub use job::Job;
pub use response::{CLOUD_ERROR, CPI_ERROR, NOT_IMPLEMENTED, NOT_SUPPORTED, Response};
pub use skip::skip;
