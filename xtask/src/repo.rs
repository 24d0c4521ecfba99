//! The paths in this repository, and the `cargo` commands for it.
//!
//! The flags that all shipped programs share are defined only here, so that build, clippy and
//! tests share one set of compiled dependencies. `build` adds those of the hot program.

use crate::command;
use anyhow::{Context, Result};
use std::env;
use std::path::PathBuf;
use std::process::Command;

pub(crate) struct Repo {
    pub(crate) root: PathBuf,
    /// The default target of this machine's rustc.
    pub(crate) triple: String,
}

impl Repo {
    pub(crate) fn find() -> Result<Repo> {
        // The variable of the running process comes first: the repository may have been moved or copied since this
        // program was compiled.
        let here = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = here.parent().context("the xtask crate has no parent directory")?.to_path_buf();
        let version = command::read(command::new("rustc").arg("-vV"))?;
        let triple = host_triple(&version).context("`rustc -vV` has no line `host:`")?.to_owned();
        Ok(Repo { root, triple })
    }

    pub(crate) fn guests(&self) -> PathBuf {
        self.root.join("guests")
    }

    /// Returns the directory of the BOSH release.
    pub(crate) fn release(&self) -> PathBuf {
        self.root.join("release")
    }

    /// Returns the directory of what ships: both programs and the guests.
    pub(crate) fn dist(&self) -> PathBuf {
        self.root.join("target/dist")
    }

    /// Returns the directory of guests and of programs that are quick to build and never ship: for `cargo xtask test --quick`.
    pub(crate) fn quick(&self) -> PathBuf {
        self.root.join("target/dist-quick")
    }

    /// Returns the directory of programs whose checks can be turned off: only for mutation tests.
    pub(crate) fn mutants(&self) -> PathBuf {
        self.root.join("target/dist-mutants")
    }

    /// Returns a `cargo` command in the root workspace, for code that runs only on this machine.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut cargo = command::new("cargo");
        cargo.current_dir(&self.root).args([subcommand, "--target-dir"]).arg(self.root.join("target"));
        cargo
    }

    /// Returns a `cargo` command for code that ships. It is linked statically, for an explicit
    /// target, so that the flags do not apply to build scripts and procedural macros.
    pub(crate) fn cargo_static(&self, subcommand: &str) -> Command {
        let mut cargo = self.cargo(subcommand);
        cargo.args(["--target", &self.triple]);
        if let Some(flags) = static_flags(&self.triple) {
            // The examples of doc comments link the same libraries.
            cargo.env(flags_variable(&self.triple, "RUSTDOCFLAGS"), &flags);
            cargo.env(flags_variable(&self.triple, "RUSTFLAGS"), flags);
        }
        cargo
    }

    /// Returns the path to which [`Repo::cargo_static`] writes a program.
    pub(crate) fn built(&self, program: &str) -> PathBuf {
        self.root.join("target").join(&self.triple).join("release").join(program)
    }

    /// Returns a `cargo` command in the workspace of the guests, which compiles for this machine.
    pub(crate) fn cargo_guests(&self, subcommand: &str) -> Command {
        let mut cargo = command::new("cargo");
        cargo.current_dir(self.guests()).args([subcommand, "--target-dir"]).arg(self.guests().join("target"));
        cargo
    }
}

/// Returns the target in the `host:` line of `rustc -vV`.
fn host_triple(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: ")).map(str::trim)
}

/// How the addresses of a shipped program are chosen: with `static` they are fixed, and it
/// starts fastest; with `pie` they are random. `pie` made a guest's call without network
/// 13 % slower and `info` 17 % slower, and the limit is 10 %.
const RELOCATION_MODEL: &str = "static";

/// Returns the flags of the shipped programs, which plain cargo does not set. A static
/// program does not depend on the version of the machine's libc. Every library contains
/// bitcode, so that link-time optimisation of the hot program uses the same libraries that
/// other programs link without it. A static program cannot check whether its C library has
/// `getrandom`, and would open files instead; all supported kernels have the system call.
fn static_flags(triple: &str) -> Option<String> {
    triple.contains("-linux-").then(|| {
        format!(
            "-C target-feature=+crt-static -C relocation-model={RELOCATION_MODEL} -C embed-bitcode=yes \
             --cfg getrandom_backend=\"linux_getrandom\""
        )
    })
}

/// Returns the name of the variable with one kind of cargo's flags for one target.
fn flags_variable(triple: &str, kind: &str) -> String {
    format!("CARGO_TARGET_{}_{kind}", triple.to_uppercase().replace(['-', '.'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_target_is_read_from_the_compilers_version() {
        let version = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\nLLVM: 22";
        assert_eq!(host_triple(version), Some("aarch64-unknown-linux-gnu"));
        assert_eq!(host_triple("rustc 1.95.0"), None);
    }

    #[test]
    fn flags_are_set_in_the_variable_of_the_target() {
        let variable = flags_variable("x86_64-unknown-linux-gnu", "RUSTFLAGS");
        assert_eq!(variable, "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS");
    }

    #[test]
    fn only_linux_programs_are_linked_statically() {
        assert!(static_flags("x86_64-unknown-linux-gnu").is_some());
        assert!(static_flags("aarch64-apple-darwin").is_none());
    }
}
