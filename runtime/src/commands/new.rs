//! placeholder until the real one lands
use crate::commands::cli::Report; use crate::failure::Failure;
#[derive(clap::Args)] pub struct Options { name: String }
pub fn new(o: &Options) -> Result<Report, Failure> { Err(Failure::request(o.name.clone())) }
