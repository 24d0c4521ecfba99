//! The config that a command reads, as the command line names it.

use super::installation;
use std::path::{Path, PathBuf};

/// The file of a config, and the module of it to read.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "compiler", derive(clap::Args))]
pub struct ConfigSource {
    /// Config file of the job
    #[cfg_attr(feature = "compiler", arg(long = "config", value_name = "CPI.json"))]
    pub path: PathBuf,
    /// Directory of packages (default: `packages` beside the `jobs` directory of the config)
    #[cfg_attr(feature = "compiler", arg(long, value_name = "DIR"))]
    pub packages: Option<PathBuf>,
    /// Name of one of the `modules` in the config (default: its own `guest`)
    #[cfg_attr(feature = "compiler", arg(long, value_name = "NAME"))]
    pub module: Option<String>,
}

impl ConfigSource {
    pub fn new(path: &Path) -> ConfigSource {
        ConfigSource { path: path.to_owned(), packages: None, module: None }
    }

    /// Returns the complete path of the config without `..`, as an operator would write it.
    pub fn written_path(&self) -> PathBuf {
        installation::written_path(&self.path)
    }
}
