//! Runs other programs, and decides which variables of the environment they inherit.
//!
//! All commands are created here: compiler flags in the environment of the user's
//! shell would silently change what is built.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Variables that change the result of a build, or that belong to the `cargo` that runs this program.
const NOT_INHERITED: [&str; 8] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_TARGET_DIR",
    "RUSTFLAGS",
];

/// Creates a command without the variables that change the result of a build.
pub(crate) fn new(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in NOT_INHERITED {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        if is_flags_of_a_target(&name) || describes_this_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns true for `CARGO_TARGET_<TRIPLE>_RUSTFLAGS`, which only the caller of [`new`] may set.
fn is_flags_of_a_target(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("CARGO_TARGET_") && name.ends_with("_RUSTFLAGS"))
}

/// Returns true for the variables in which `cargo xtask` passes the name and the version of xtask. The build script of `ring`
/// reads its own; with those of xtask in cargo's environment it would run again after each plain cargo command.
fn describes_this_package(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_"))
}

/// Prints the command and runs it; the output of the command is not captured.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    eprintln!("    $ {line}");
    let status = command.status().with_context(|| format!("`{line}` could not be started"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs the command without printing anything, and returns its stdout, trimmed.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let line = command_line(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("`{line}` could not be started"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout).with_context(|| format!("stdout of `{line}` is not UTF-8"))?.trim().to_owned())
}

/// Returns the program and its arguments, without the environment.
fn command_line(command: &Command) -> String {
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    parts.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_returned_trimmed() {
        assert_eq!(read(new("sh").args(["-c", "echo ' a '"])).unwrap(), "a");
    }

    #[test]
    fn a_failure_shows_the_command_its_status_and_its_stderr() {
        let error = read(new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        for part in ["sh -c", "exit status: 3", "why"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn flags_of_the_users_shell_do_not_reach_a_build() {
        let command = new("true");
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert!(removed.contains(&OsStr::new("RUSTFLAGS")) && removed.contains(&OsStr::new("CARGO_TARGET_DIR")));
        assert!(is_flags_of_a_target(OsStr::new("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS")));
        assert!(!is_flags_of_a_target(OsStr::new("CARGO_TARGET_WASM32_WASIP2_LINKER")));
    }
    #[test]
    fn the_name_of_this_package_is_not_inherited() {
        let command = new("env");
        let removed: Vec<&OsStr> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert!(removed.contains(&OsStr::new("CARGO_PKG_NAME")), "{removed:?}");
    }
}
