//! An OpenStack for tests: a simulator of the API subset that a CPI uses, and
//! a gateway in front of the simulator or of real services.
//!
//! `Simulator` answers requests from state in memory and uses no sockets. It
//! behaves like the services of release 2025.1; any difference is a bug of the
//! simulator. `Gateway` listens on one port per service, passes requests to a
//! `Backend`, records them, and injects faults on demand. `Api` lists what exists
//! in either cloud.

mod block_devices;
mod client;
mod clock;
mod clouds;
mod compute;
mod compute_resources;
mod faults;
mod floating_ips;
mod gateway;
mod identity;
mod image;
mod image_data;
mod load_balancers;
mod message;
mod metadata_service;
mod network;
mod origins;
mod ports;
mod python;
mod real_cloud;
mod records;
mod seed;
mod server_build;
mod server_create;
mod server_groups;
mod server_metadata;
mod server_views;
mod servers;
mod service;
mod simulator;
mod snapshots;
mod state;
mod subnet_pools;
mod subnets;
mod table;
mod versions;
mod volume;
mod volume_actions;
mod volume_attachments;
mod wire;

pub use client::{Api, Contents};
pub use clouds::{Tenant, on_each_cloud, on_each_secure_cloud};
pub use faults::{Fault, Hits, Rule, Step, Steps};
pub use gateway::Gateway;
pub use message::{Request, Response};
pub use real_cloud::RealCloud;
pub use records::RecordedRequest;
pub use service::{Backend, Service};
pub use simulator::Simulator;
