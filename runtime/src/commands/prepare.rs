//! `prepare`: fill the cache before the first call.

use crate::commands::cli::Report;
use crate::component::compile::drop_to;
use crate::component::prepared::{self, Preparation, Stored};
use crate::component::source::{self, PinnedGuest};
use crate::config::{Config, ConfigArg};
use crate::failure::Failure;
use crate::hardening::Hardening;
use crate::limits::Limits;
use crate::log::Level;
use crate::startup;
use clap::Args;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct PrepareOptions {
    /// Config files of jobs whose guests to prepare
    #[arg(long, value_name = "CPI.json", num_args = 1.., required_unless_present = "cache", conflicts_with = "cache")]
    config: Vec<PathBuf>,
    /// Where their packages are installed; default: `packages` beside their `jobs`
    #[arg(long, value_name = "DIR", requires = "config")]
    packages: Option<PathBuf>,
    /// Prepare a file into this directory, whatever its digest
    #[arg(long, value_name = "DIR", requires = "guest")]
    cache: Option<PathBuf>,
    /// The guest for --cache
    #[arg(value_name = "GUEST.wasm", requires = "cache")]
    guest: Option<PathBuf>,
}

pub fn prepare(options: &PrepareOptions) -> Result<Report, Failure> {
    startup::secure_process();
    let mut text = String::new();
    let mut good = true;
    if let (Some(cache), Some(guest)) = (&options.cache, &options.guest) {
        let limits = Limits::default();
        become_owner(cache)?;
        let sha256 = source::read(guest, &limits)?.sha256;
        let guest = PinnedGuest { path: guest.clone(), sha256, signature: None };
        good &= one(Preparation { guest: &guest, cache, limits: &limits, hardening: Hardening::default() }, &mut text)?;
    }
    let source = |path: &PathBuf| ConfigArg { packages: options.packages.clone(), ..ConfigArg::new(path) };
    let configs: Vec<Vec<Config>> =
        options.config.iter().map(|path| Config::load_all(&source(path))).collect::<Result<_, _>>()?;
    for config in configs.iter().flatten() {
        become_owner(&config.cache)?;
        good &= one(config.preparation(), &mut text)?;
    }
    Ok(Report { text, good })
}

fn one(preparation: Preparation<'_>, text: &mut String) -> Result<bool, Failure> {
    let doubts = std::cell::RefCell::new(Vec::new());
    let (prepared, stored) = prepared::prepare(preparation, &|event| {
        if event.level() >= Level::Warn {
            doubts.borrow_mut().push(event.to_string());
        }
    })?;
    for doubt in doubts.into_inner() {
        let _ = writeln!(text, "warning: {doubt}");
    }
    let description = &prepared.description;
    let (how, good) = match stored {
        Stored::Already => ("already prepared".to_owned(), true),
        Stored::Now => (format!("prepared in {}", preparation.cache.display()), true),
        Stored::Unstamped(why) => {
            (format!("prepared, but its file was touched and is hashed in every call: {why}"), false)
        }
        Stored::Not(why) => (format!("compiled, but cannot be kept: {why}"), false),
    };
    let _ =
        writeln!(text, "{} {} ({}): {how}", description.name, description.version, preparation.guest.path.display());
    Ok(good)
}

/// Root prepares for the user that runs calls, as that user: what it writes must
/// be that user's, and a stranger's module is none of root's business.
fn become_owner(cache: &Path) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let Ok(metadata) = std::fs::symlink_metadata(cache) else { return Ok(()) };
    if metadata.uid() == 0 {
        return Ok(());
    }
    drop_to(metadata.uid(), metadata.gid()).map_err(|error| {
        Failure::config(format!("cannot become user {}, who owns {}: {error}", metadata.uid(), cache.display()))
    })
}
