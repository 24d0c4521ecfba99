//! An OpenStack for tests: a simulator of the API subset that a CPI uses, and
//! a gateway in front of it or of real services.
//!
//! `Simulator` answers requests from state in memory and knows no sockets; it
//! behaves like the services of 2025.1 and a difference is its bug. `Gateway`
//! listens, one port per service, hands requests to a `Backend`, records them
//! and misbehaves on demand. `Api` looks at what is in either cloud.

mod attachments;
mod blockdevices;
mod building;
mod client;
mod clock;
mod clouds;
mod compute;
mod creating;
mod extras;
mod faults;
mod floating;
mod gateway;
mod groups;
mod identity;
mod image;
mod image_data;
mod loadbalancing;
mod message;
mod metadata;
mod network;
mod pools;
mod ports;
mod python;
mod recording;
mod rewrite;
mod seed;
mod servers;
mod service;
mod simulator;
mod snapshots;
mod state;
mod subnets;
mod table;
mod tagging;
mod upstream;
mod versions;
mod views;
mod volume;
mod volume_actions;
mod wire;

pub use client::{Api, Contents};
pub use clouds::{Tenant, on_each_cloud, on_each_secure_cloud};
pub use faults::{Fault, Hits, Rule, Step, Steps};
pub use gateway::Gateway;
pub use message::{Request, Response};
pub use recording::Recorded;
pub use service::{Backend, Service};
pub use simulator::Simulator;
pub use upstream::Real;
