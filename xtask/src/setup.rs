//! `cargo xtask setup`: what building guests needs beyond a host toolchain.
//!
//! Guests need a standard library for `wasm32-wasip2`. rustup's is taken where it
//! is installed; else Debian's compiler for wasm, which builds std from source.
//! Which one is decided by `choose`, a pure function, and said in one line.
//! Nothing is installed without root, and nothing but the packages named here.

use crate::command;
use crate::repo::Repo;
use anyhow::{Result, anyhow, bail};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Packages are installed by one thread at a time: apt's lists have one lock.
static PACKAGES_CHANGE: Mutex<()> = Mutex::new(());

/// What guests are compiled for: comes out of the linker as a component.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// Debian's packages that together replace rustup's target.
const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "wasi-libc"];

/// The way guests are built on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    Rustup,
    /// Debian's compiler, with the linkers that lie in this directory of rustup's toolchain.
    Debian {
        linkers: PathBuf,
    },
}

/// What was found on this machine.
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
    Ask(String),
}

pub(crate) fn run(repo: &Repo) -> Result<Toolchain> {
    let _alone = alone();
    match choose(&Facts::gather()) {
        Choice::Rustup => {
            eprintln!("    guests: built with rustup's target {TARGET}");
            Ok(Toolchain::Rustup)
        }
        Choice::Debian => debian(repo),
        Choice::Install(packages) => {
            install(&packages)?;
            debian(repo)
        }
        Choice::Ask(remedy) => bail!("{remedy}"),
    }
}

/// Programs that tests run, installed by their packages where they are missing.
pub(crate) fn tools(tools: &[(&str, &'static str)]) -> Result<()> {
    let _alone = alone();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let missing =
        |(program, _): &&(&str, &str)| !std::env::split_paths(&paths).any(|path| path.join(program).is_file());
    let packages: Vec<&str> = tools.iter().filter(missing).map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let facts = Facts::gather();
    if !(facts.root && facts.apt) {
        bail!("these packages are missing: {0}; on Debian: sudo apt-get install {0}", packages.join(" "));
    }
    apt_install(&packages)
}

/// Held by whoever looks for packages and installs what is missing.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    PACKAGES_CHANGE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn debian(repo: &Repo) -> Result<Toolchain> {
    let sysroot = command::read(command::new("rustc").args(["--print", "sysroot"]))?;
    let linkers = Path::new(&sysroot).join("lib/rustlib").join(&repo.triple).join("bin");
    for linker in ["rust-lld", "wasm-component-ld"] {
        if !linkers.join(linker).exists() {
            bail!(
                "Debian's wasm compiler needs `{linker}` of a rustup toolchain, and {} has none: \
                 install Rust with rustup (https://rustup.rs), then try again",
                linkers.display()
            );
        }
    }
    eprintln!(
        "    guests: built with Debian's rustc-web and std from source (rustup's target {TARGET} is not installed)"
    );
    Ok(Toolchain::Debian { linkers })
}

fn install(packages: &[&str]) -> Result<()> {
    eprintln!(
        "    guests: rustup's target {TARGET} is not installed; installing Debian's {} (half a minute)",
        packages.join(" ")
    );
    apt_install(packages).map_err(|error| anyhow!("{error:#}\nGuests cannot be built yet; {}", remedy(packages)))
}

fn apt_install(packages: &[&str]) -> Result<()> {
    let apt = |words: &[&str]| {
        let mut apt = command::new("apt-get");
        command::run(apt.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
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
    Choice::Ask(format!(
        "guests cannot be built: no std for {TARGET} is installed; {}",
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
        // The compiler names the directory whether or not the target is installed.
        let libraries = command::read(command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
        let rustup_target = libraries.is_ok_and(|path| Path::new(&path).is_dir());
        let missing_packages = PACKAGES.into_iter().filter(|package| !is_installed(package)).collect();
        // The owner of our own entry in /proc is who we are: std has no other way to ask.
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
    fn rustups_target_wins_wherever_it_exists() {
        for missing in [&[][..], &PACKAGES] {
            assert_eq!(choose(&facts(true, missing, true, true)), Choice::Rustup);
        }
    }

    #[test]
    fn installed_packages_are_used_by_anybody() {
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
    fn without_root_or_apt_both_remedies_are_spelled_out() {
        for (root, apt) in [(false, true), (true, false), (false, false)] {
            let Choice::Ask(text) = choose(&facts(false, &PACKAGES, root, apt)) else {
                panic!("root {root}, apt {apt}: something was chosen");
            };
            assert!(text.contains("rustup target add wasm32-wasip2"), "{text}");
            assert!(text.contains("sudo apt-get install rustc-web cargo-web rust-web-src wasi-libc"), "{text}");
        }
    }
}
