//! Black-box tests of the built binaries, one module per subject.

mod agent;
mod archives;
mod audit;
mod author;
mod commands;
mod configs;
mod conformance;
mod describes;
mod endings;
mod hardening;
mod http;
mod images;
mod limits;
mod newer;
mod openstack;
mod pins;
mod prepared;
mod promises;
mod registry;
mod requests;
mod rows;
mod secrets;
mod shipped;
mod signatures;
mod traps;
mod wasi;
