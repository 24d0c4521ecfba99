//! `cargo xtask guest DIR`: builds the guest in DIR, inside or outside of this repository, with the
//! toolchain that this machine has, and prints the path of the component. Cargo writes it to the
//! guest's own target directory, where plain `cargo build` writes it too.

use crate::command;
use crate::repo::Repo;
use crate::setup::{self, TARGET, Toolchain};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn run(repo: &Repo, directory: &Path) -> Result<()> {
    let guest = Guest::find(directory)?;
    let toolchain = setup::run(repo)?;
    command::run(&mut cargo_build(&toolchain, directory)?)?;
    let component = component(&guest.target_directory, &guest.library);
    println!("{}", component.display());
    Ok(())
}

/// Returns a `cargo build` command for the guest, or the workspace of guests, in a directory.
pub(crate) fn cargo_build(toolchain: &Toolchain, directory: &Path) -> Result<Command> {
    let mut cargo = match toolchain {
        Toolchain::Rustup => command::new("cargo"),
        Toolchain::Debian { linkers } => debian_cargo(linkers)?,
    };
    cargo.current_dir(directory).arg("build");
    if let Toolchain::Debian { .. } = toolchain {
        cargo.arg("-Zbuild-std=std,panic_abort");
    }
    cargo.args(["--release", "--target", TARGET]);
    Ok(cargo)
}

/// Returns the path to which [`cargo_build`] writes the component of a library.
pub(crate) fn component(target_directory: &Path, library: &str) -> PathBuf {
    target_directory.join(TARGET).join("release").join(format!("{library}.wasm"))
}

/// Returns Debian's cargo. Its compiler has no std for the target: std is built once per
/// target directory, and linked against Debian's WASI libc.
fn debian_cargo(linkers: &Path) -> Result<Command> {
    let mut cargo = command::new("/usr/bin/cargo");
    cargo
        .env("PATH", path_with(linkers)?)
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTC_BOOTSTRAP", "1")
        .env(
            "RUSTFLAGS",
            "-L native=/usr/lib/wasm32-wasi -C link-self-contained=no -C link-arg=/usr/lib/wasm32-wasi/crt1-reactor.o",
        )
        // Rustup's cargo, which runs this program, sets both for its own toolchain.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("RUSTUP_TOOLCHAIN");
    Ok(cargo)
}

fn path_with(first: &Path) -> Result<OsString> {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(first.to_path_buf()).chain(env::split_paths(&inherited));
    env::join_paths(all).with_context(|| format!("{} cannot be added to PATH", first.display()))
}

/// A crate that is built as a component.
#[derive(Debug, PartialEq, Eq)]
struct Guest {
    library: String,
    target_directory: PathBuf,
}

impl Guest {
    fn find(directory: &Path) -> Result<Guest> {
        let manifest = directory.join("Cargo.toml");
        let manifest = fs::canonicalize(&manifest)
            .with_context(|| format!("{} has no Cargo.toml; pass the directory of a guest", directory.display()))?;
        let mut cargo = command::new("cargo");
        cargo.current_dir(directory).args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata =
            serde_json::from_str(&command::read(&mut cargo)?).context("stdout of `cargo metadata` is not JSON")?;
        Guest::read(&metadata, &manifest)
    }

    fn read(metadata: &Value, manifest: &Path) -> Result<Guest> {
        let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let own = |package: &&Value| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest);
        let Some(package) = packages.iter().find(own) else {
            bail!("{} is not a package but a workspace; pass the directory of one guest", manifest.display());
        };
        let targets = package["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let component =
            |target: &&Value| target["crate_types"].as_array().is_some_and(|all| all.contains(&"cdylib".into()));
        let Some(library) = targets.iter().find(component) else {
            bail!("{} is not a guest; add a [lib] with crate-type = [\"cdylib\"]", manifest.display());
        };
        let text =
            |value: &Value| value.as_str().map(str::to_owned).context("the output of `cargo metadata` lacks a name");
        Ok(Guest {
            library: text(&library["name"])?.replace('-', "_"),
            target_directory: text(&metadata["target_directory"])?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(metadata: &Value) -> Result<Guest> {
        Guest::read(metadata, Path::new("/g/Cargo.toml"))
    }

    #[test]
    fn a_guest_is_the_library_of_its_own_directory() {
        let lib = |name: &str, kind: &str| json!({"name": name, "crate_types": [kind]});
        let metadata = json!({"target_directory": "/g/target", "packages": [
            {"name": "other", "manifest_path": "/g/other/Cargo.toml", "targets": [lib("other", "cdylib")]},
            {"name": "my-cloud", "manifest_path": "/g/Cargo.toml", "targets": [lib("example", "bin"), lib("my_cloud", "cdylib")]},
        ]});
        let guest = Guest { library: "my_cloud".to_owned(), target_directory: "/g/target".into() };
        assert_eq!(read(&metadata).unwrap(), guest);
        let component = component(&guest.target_directory, &guest.library);
        assert_eq!(component, Path::new("/g/target/wasm32-wasip2/release/my_cloud.wasm"));
    }

    #[test]
    fn the_error_about_a_crate_that_is_not_a_guest_names_what_it_lacks() {
        let bin =
            json!({"name": "g", "manifest_path": "/g/Cargo.toml", "targets": [{"name": "g", "crate_types": ["bin"]}]});
        for (packages, lacks) in [(json!([]), "one guest"), (json!([bin]), "cdylib")] {
            let error = read(&json!({"target_directory": "/g/target", "packages": packages})).unwrap_err().to_string();
            assert!(error.contains(lacks) && error.contains("/g/Cargo.toml"), "{error}");
        }
        let empty = tempfile::tempdir().unwrap();
        let error = Guest::find(empty.path()).unwrap_err().to_string();
        assert!(error.contains("has no Cargo.toml"), "{error}");
    }
}
