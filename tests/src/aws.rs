//! An AWS for tests: a simulator of what a CPI uses of EC2, load balancing, STS, EBS
//! direct and the instance metadata service.
//!
//! `Simulator` answers requests from state in memory and uses no sockets; a `Gateway` in
//! front of it listens on one port per service. It is strict: it verifies signatures, and
//! refuses parameters that the public service models do not have, and those that it does
//! not implement. `tests/aws/README.md` describes how it is compared with botocore and moto.

mod answer;
mod authentication;
mod client;
mod clock;
mod ebs;
mod ec2;
mod error;
mod faults;
mod form;
mod idempotency;
mod ip_range;
mod kind;
mod listing;
mod load_balancing;
mod metadata;
mod model;
mod parameters;
mod seed;
mod service;
mod signature;
mod simulator;
mod snapshot_blocks;
mod state;
mod sts;

#[cfg(test)]
mod tests;

pub use client::{Client, element, escape};
pub use faults::{service_error, throttled};
pub use service::Service;
pub use simulator::Simulator;

pub type Gateway = crate::gateway::Gateway<Service>;
pub type Rule = crate::gateway::Rule<Service>;
