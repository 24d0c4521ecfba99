//! The BOSH release: what its templates render, the rendered job as a Director and the
//! CLI run it, and the tarball that both read.

mod clouds;
mod installed_job;
mod modules;
mod proxies;
mod tarball;
mod templates;
