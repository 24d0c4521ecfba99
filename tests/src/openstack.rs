//! An OpenStack for tests: a simulator of the API subset that a CPI uses, and
//! a gateway in front of the simulator or of real services.
//!
//! `Simulator` answers requests from state in memory and uses no sockets. It
//! behaves like the services of release 2025.1; any difference is a bug of the
//! simulator. A `Gateway` in front of it listens on one port per service. `Api` lists
//! what exists in either cloud.

mod block_devices;
mod client;
mod clock;
mod clouds;
mod compute;
mod compute_resources;
mod floating_ips;
mod identity;
mod image;
mod image_data;
mod load_balancers;
mod message;
mod metadata_service;
mod network;
mod ports;
mod python;
mod real_cloud;
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

pub use crate::gateway::{Backend, Fault, Hits, Request, Response, Step, Steps};
pub use client::{Api, Contents};
pub use clouds::{Tenant, on_each_cloud, on_each_secure_cloud};
pub use real_cloud::RealCloud;
pub use service::Service;
pub use simulator::Simulator;

pub type Gateway = crate::gateway::Gateway<Service>;
pub type RecordedRequest = crate::gateway::RecordedRequest<Service>;
pub type Rule = crate::gateway::Rule<Service>;
