//! Where things lie in this repository, and how `cargo` is called in it.
//!
//! The flags of the shipped binaries are decided here and nowhere else, so that
//! build, clippy and tests share one set of compiled dependencies.

use crate::command;
use anyhow::{Context, Result};
use std::env;
use std::path::PathBuf;
use std::process::Command;

pub(crate) struct Repo {
    pub(crate) root: PathBuf,
    /// What this machine's rustc builds for by default.
    pub(crate) triple: String,
}

impl Repo {
    pub(crate) fn find() -> Result<Repo> {
        // Asked at run time first: this program may have been compiled before the repository was moved or copied.
        let here = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = here.parent().context("the xtask crate has no parent directory")?.to_path_buf();
        let version = command::read(command::new("rustc").arg("-vV"))?;
        let triple = host_triple(&version).context("`rustc -vV` has no line `host:`")?.to_owned();
        Ok(Repo { root, triple })
    }

    pub(crate) fn guests(&self) -> PathBuf {
        self.root.join("guests")
    }

    /// The BOSH release's directory.
    pub(crate) fn release(&self) -> PathBuf {
        self.root.join("release")
    }

    /// Everything built for use: both binaries and the guests.
    pub(crate) fn dist(&self) -> PathBuf {
        self.root.join("target/dist")
    }

    /// Programs that are quick to build and not for use, and the guests: for `cargo xtask test --quick`.
    pub(crate) fn quick(&self) -> PathBuf {
        self.root.join("target/dist-quick")
    }

    /// The same programs with checks that can be turned off: for mutation tests alone.
    pub(crate) fn holes(&self) -> PathBuf {
        self.root.join("target/dist-holes")
    }

    /// `cargo` in the root workspace, for code that runs on this machine only.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut cargo = command::new("cargo");
        cargo.current_dir(&self.root).args([subcommand, "--target-dir"]).arg(self.root.join("target"));
        cargo
    }

    /// The same for code that ships: static, for an explicit target, so that the
    /// flags do not reach build scripts and procedural macros.
    pub(crate) fn cargo_static(&self, subcommand: &str) -> Command {
        let mut cargo = self.cargo(subcommand);
        cargo.args(["--target", &self.triple]);
        if let Some(flags) = static_flags(&self.triple) {
            cargo.env(flags_variable(&self.triple), flags);
        }
        cargo
    }

    /// Where cargo leaves a program of `cargo_static`.
    pub(crate) fn built(&self, program: &str) -> PathBuf {
        self.root.join("target").join(&self.triple).join("release").join(program)
    }

    /// `cargo` in the guests' workspace, with this machine's own compiler.
    pub(crate) fn cargo_guests(&self, subcommand: &str) -> Command {
        let mut cargo = command::new("cargo");
        cargo.current_dir(self.guests()).args([subcommand, "--target-dir"]).arg(self.guests().join("target"));
        cargo
    }
}

/// The host line of `rustc -vV`.
fn host_triple(version: &str) -> Option<&str> {
    version.lines().find_map(|line| line.strip_prefix("host: ")).map(str::trim)
}

/// Where the kernel loads a shipped program: `static` is linked to fixed addresses
/// and starts fastest, `pie` (a static position-independent program) gets random ones. That
/// cost 13 % of a guest's call without network and 17 % of `info`, and a tenth is the limit.
const RELOCATION_MODEL: &str = "static";

/// The flags of the shipped programs, which plain cargo does without. A static
/// binary needs no libc of a certain age. Every library carries its bitcode, so that
/// the hot binary can be optimised as a whole from the very libraries that all others
/// link as they are. A static program cannot ask its C library whether it knows
/// `getrandom`, and would open files instead: every kernel that we run on has it.
fn static_flags(triple: &str) -> Option<String> {
    triple.contains("-linux-").then(|| {
        format!(
            "-C target-feature=+crt-static -C relocation-model={RELOCATION_MODEL} -C embed-bitcode=yes \
             --cfg getrandom_backend=\"linux_getrandom\""
        )
    })
}

/// The variable through which cargo takes flags for one target.
fn flags_variable(triple: &str) -> String {
    format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace(['-', '.'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_the_compilers_version() {
        let version = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\nLLVM: 22";
        assert_eq!(host_triple(version), Some("aarch64-unknown-linux-gnu"));
        assert_eq!(host_triple("rustc 1.95.0"), None);
    }

    #[test]
    fn flags_go_to_the_variable_of_the_target_alone() {
        assert_eq!(flags_variable("x86_64-unknown-linux-gnu"), "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS");
    }

    #[test]
    fn only_linux_binaries_are_linked_statically() {
        assert!(static_flags("x86_64-unknown-linux-gnu").is_some());
        assert!(static_flags("aarch64-apple-darwin").is_none());
    }
}
