//! The BOSH release: what its templates make of manifests, what runs of them as
//! a Director and the CLI run it, and the tarball that both read.

mod clouds;
mod modules;
mod proxies;
mod rendering;
mod running;
mod tarball;
