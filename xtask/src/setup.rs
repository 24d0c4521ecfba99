//! `cargo xtask setup`: installs what guests are built with, besides the host toolchain.
//!
//! Guests need a standard library for `wasm32-wasip2`. If rustup's is installed, it is
//! used; otherwise Debian's compiler for wasm, which builds std from source. `choose`, a
//! pure function, decides, and one line reports the choice. Without root nothing is
//! installed; with root only the packages that are named here.

use crate::command;
use crate::repo::Repo;
use anyhow::{Result, anyhow, bail};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Only one thread at a time may install packages, because apt locks its lists.
static PACKAGES_LOCK: Mutex<()> = Mutex::new(());

/// The target of guests, for which the linker writes a component.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// The Debian packages that together replace rustup's target.
const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "wasi-libc"];

/// The toolchain that builds guests on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    Rustup,
    /// Debian's compiler, with the linkers in this directory of rustup's toolchain.
    Debian {
        linkers: PathBuf,
    },
}

/// The facts about this machine on which the choice depends.
struct Facts {
    rustup_target: bool,
    missing_packages: Vec<&'static str>,
    root: bool,
    apt: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Rustup,
    Debian,
    Install(Vec<&'static str>),
    /// Nothing can be installed; the text is the error, with what the user can do.
    Fail(String),
}

/// Returns the toolchain for guests; installs Debian's if there is none.
pub(crate) fn run(repo: &Repo) -> Result<Toolchain> {
    let _lock = lock_packages();
    match choose(&Facts::gather()) {
        Choice::Rustup => {
            eprintln!("    guests are built with rustup's target {TARGET}");
            Ok(Toolchain::Rustup)
        }
        Choice::Debian => debian(repo),
        Choice::Install(packages) => {
            install(&packages)?;
            debian(repo)
        }
        Choice::Fail(message) => bail!("{message}"),
    }
}

/// Installs the Debian packages of those programs that are missing. An entry is a program and its package.
pub(crate) fn install_missing_tools(tools: &[(&str, &'static str)]) -> Result<()> {
    let _lock = lock_packages();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let missing =
        |(program, _): &&(&str, &str)| !std::env::split_paths(&paths).any(|path| path.join(program).is_file());
    let packages: Vec<&str> = tools.iter().filter(missing).map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let facts = Facts::gather();
    if !(facts.root && facts.apt) {
        bail!(
            "these packages are missing, and only root can install them: {0}; install them, on Debian with \
             `sudo apt-get install {0}`",
            packages.join(" ")
        );
    }
    apt_install(&packages)
}

/// Installs a Debian package that has no program of its own; hold the guard of [`lock_packages`]. Does nothing on other
/// systems, where the next step fails if something is missing.
pub(crate) fn package(package: &str) -> Result<()> {
    let facts = Facts::gather();
    if facts.apt && facts.root && !is_installed(package) {
        return apt_install(&[package]);
    }
    Ok(())
}

/// Locks the installation of packages; hold the guard while checking and installing packages.
pub(crate) fn lock_packages() -> MutexGuard<'static, ()> {
    PACKAGES_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn debian(repo: &Repo) -> Result<Toolchain> {
    let sysroot = command::read(command::new("rustc").args(["--print", "sysroot"]))?;
    let linkers = Path::new(&sysroot).join("lib/rustlib").join(&repo.triple).join("bin");
    for linker in ["rust-lld", "wasm-component-ld"] {
        if !linkers.join(linker).exists() {
            bail!(
                "Debian's wasm compiler needs `{linker}` of a rustup toolchain, and it is not in {}; \
                 install Rust with rustup (https://rustup.rs), then try again",
                linkers.display()
            );
        }
    }
    eprintln!(
        "    guests are built with Debian's rustc-web and std from source (rustup's target {TARGET} is not installed)"
    );
    Ok(Toolchain::Debian { linkers })
}

fn install(packages: &[&str]) -> Result<()> {
    eprintln!(
        "    rustup's target {TARGET} is not installed; installing Debian's {} (takes half a minute)",
        packages.join(" ")
    );
    apt_install(packages).map_err(|error| anyhow!("{error:#}\nguests cannot be built; {}", remedy(packages)))
}

fn apt_install(packages: &[&str]) -> Result<()> {
    let apt = |arguments: &[&str]| {
        let mut apt = command::new("apt-get");
        command::run(apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "--quiet=2"])?;
    apt(&[&["install", "--yes", "--quiet=2", "--no-install-recommends"], packages].concat())
}

fn choose(facts: &Facts) -> Choice {
    if facts.rustup_target {
        return Choice::Rustup;
    }
    if facts.missing_packages.is_empty() {
        return Choice::Debian;
    }
    if facts.root && facts.apt {
        return Choice::Install(facts.missing_packages.clone());
    }
    Choice::Fail(format!(
        "guests cannot be built, because std for {TARGET} is not installed; {}",
        remedy(&facts.missing_packages)
    ))
}

fn remedy(packages: &[&str]) -> String {
    format!(
        "run one of these, then try again:\n  rustup target add {TARGET}\n  sudo apt-get install {}    (on Debian)",
        packages.join(" ")
    )
}

impl Facts {
    fn gather() -> Facts {
        // The compiler prints the path even if the target is not installed.
        let libraries = command::read(command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
        let rustup_target = libraries.is_ok_and(|path| Path::new(&path).is_dir());
        let missing_packages = PACKAGES.into_iter().filter(|package| !is_installed(package)).collect();
        // The owner of /proc/self is the user of this process; std has no function for that.
        let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let apt = command::read(command::new("apt-get").arg("--version")).is_ok();
        Facts { rustup_target, missing_packages, root, apt }
    }
}

pub(crate) fn is_installed(package: &str) -> bool {
    let status =
        command::read(command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(rustup_target: bool, missing: &[&'static str], root: bool, apt: bool) -> Facts {
        Facts { rustup_target, missing_packages: missing.to_vec(), root, apt }
    }

    #[test]
    fn rustups_target_is_used_if_it_is_installed() {
        for missing in [&[][..], &PACKAGES] {
            assert_eq!(choose(&facts(true, missing, true, true)), Choice::Rustup);
        }
    }

    #[test]
    fn installed_packages_are_used_with_and_without_root() {
        for root in [true, false] {
            assert_eq!(choose(&facts(false, &[], root, true)), Choice::Debian);
        }
    }

    #[test]
    fn root_installs_only_what_is_missing() {
        let missing = ["wasi-libc"];
        assert_eq!(choose(&facts(false, &missing, true, true)), Choice::Install(missing.to_vec()));
    }

    #[test]
    fn without_root_or_apt_the_error_shows_both_remedies() {
        for (root, apt) in [(false, true), (true, false), (false, false)] {
            let Choice::Fail(text) = choose(&facts(false, &PACKAGES, root, apt)) else {
                panic!("root {root}, apt {apt}: the choice must be an error");
            };
            assert!(text.contains("rustup target add wasm32-wasip2"), "{text}");
            assert!(text.contains("sudo apt-get install rustc-web cargo-web rust-web-src wasi-libc"), "{text}");
        }
    }
}
