//! `prepare`: compiles guests into the cache before their first call.

use crate::commands::calling_user::become_owner;
use crate::commands::report::Report;
use crate::component::preparation::{self, Preparation, Stored};
use crate::component::source::{self, PinnedGuest};
use crate::config::{Config, ConfigSource};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::lock_down::LockDownLevel;
use crate::log::Level;
use crate::startup;
use clap::Args;
use std::fmt::Write as _;
use std::path::PathBuf;
use wasm_cpi_checks::with_code;

#[derive(Args)]
pub struct PrepareOptions {
    /// Config files of jobs; the guests of all their modules are prepared
    #[arg(long, value_name = "CPI.json", num_args = 1.., required_unless_present = "cache", conflicts_with = "cache")]
    config: Vec<PathBuf>,
    /// Directory of the jobs' packages (default: `packages` beside the `jobs` directory of each config)
    #[arg(long, value_name = "DIR", requires = "config")]
    packages: Option<PathBuf>,
    /// Cache directory for a guest without a config; its digest is not compared with a pin
    #[arg(long, value_name = "DIR", requires = "guest")]
    cache: Option<PathBuf>,
    /// File of the guest for --cache
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
        good &= prepare_one(
            Preparation { guest: &guest, cache, limits: &limits, hardening: LockDownLevel::default() },
            &mut text,
        )?;
    }
    let source = |path: &PathBuf| ConfigSource { packages: options.packages.clone(), ..ConfigSource::new(path) };
    let configs: Vec<Vec<Config>> =
        options.config.iter().map(|path| Config::load_all(&source(path))).collect::<Result<_, _>>()?;
    for config in configs.iter().flatten() {
        become_owner(&config.cache)?;
        good &= prepare_one(config.preparation(), &mut text)?;
    }
    Ok(Report { text, good })
}

fn prepare_one(preparation: Preparation<'_>, text: &mut String) -> Result<bool, Failure> {
    let warnings = std::cell::RefCell::new(Vec::new());
    let prepared = preparation::prepare(preparation, &|event| {
        if event.level() >= Level::Warn {
            warnings.borrow_mut().push(with_code(&event.to_string(), event.check()));
        }
    })?;
    for warning in warnings.into_inner() {
        let _ = writeln!(text, "warning: {warning}");
    }
    let description = &prepared.description;
    // A warning says why it could not be stored.
    let (how, good) = match prepared.stored {
        Stored::Already => ("already prepared".to_owned(), true),
        Stored::Now => (format!("prepared in {}", preparation.cache.display()), true),
        Stored::Unstamped => ("prepared, but the new time stamp of its file is not stored".to_owned(), false),
        Stored::Not => ("compiled, but not stored".to_owned(), false),
    };
    let _ =
        writeln!(text, "{} {} ({}): {how}", description.name, description.version, preparation.guest.path.display());
    Ok(good)
}
