//! `forget-tokens`: deletes the tokens that calls keep for later ones.

use crate::commands::calling_user::as_owner;
use crate::commands::report::Report;
use crate::config::{Config, ConfigSource};
use crate::failure::Failure;
use crate::startup;
use crate::token_store;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct ForgetTokensOptions {
    /// Config file of the job
    #[arg(long, value_name = "CPI.json", required_unless_present = "cache")]
    config: Option<PathBuf>,
    /// Directory of packages (default: `packages` beside the `jobs` directory of the config)
    #[arg(long, value_name = "DIR", requires = "config")]
    packages: Option<PathBuf>,
    /// Cache directory, for jobs whose config is gone, as after `bosh create-env`
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    cache: Option<PathBuf>,
}

/// Deletes all tokens in the cache directories of a config and all its modules, or in one directory.
pub fn forget_tokens(options: &ForgetTokensOptions) -> Result<Report, Failure> {
    startup::secure_process();
    let mut directories: Vec<PathBuf> = options.cache.iter().cloned().collect();
    if let Some(path) = options.config.clone() {
        let source = ConfigSource { path, packages: options.packages.clone(), module: None };
        for config in Config::load_all(&source)? {
            if !directories.contains(&config.cache) {
                directories.push(config.cache);
            }
        }
    }
    let mut report = Report::good(String::new());
    for cache in directories {
        // The files belong to the user who runs calls.
        let forgotten = as_owner(&cache, || token_store::forget_tokens(&cache)).map_err(|failure| failure.message);
        let forgotten = forgotten.and_then(|forgotten| forgotten.map_err(|error| error.to_string()));
        report.good &= forgotten.is_ok();
        let what = match forgotten {
            Ok(0) => "no token is kept".to_owned(),
            Ok(1) => "deleted 1 token; the next call logs in again".to_owned(),
            Ok(count) => format!("deleted {count} tokens; the next calls log in again"),
            Err(error) => error,
        };
        report.text.push_str(&format!("{}: {what}\n", cache.display()));
    }
    Ok(report)
}
