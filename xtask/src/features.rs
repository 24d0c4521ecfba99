//! Checks which features each program is built with. Cargo unifies the features of all
//! packages that one command builds: this checks what plain `cargo build` and `cargo build
//! --package wasm-cpi-run` enable. `--workspace` always unifies all features.

use crate::build::{HOT, TOOL};
use crate::command;
use crate::repo::Repo;
use anyhow::{Result, bail};

/// A package, or one of its features.
type Part = (&'static str, Option<&'static str>);

/// The compiler, which only the tool may contain.
const COMPILER: [Part; 3] = [(TOOL, Some("compiler")), ("wasmtime", Some("cranelift")), ("cranelift-codegen", None)];

/// Features and packages that only tests may use.
const FOR_TESTS: [Part; 4] = [
    (TOOL, Some("fuzzing")),
    (TOOL, Some("mutation-testing")),
    ("wasm-cpi-checks", Some("mutation-testing")),
    // The other implementation of signatures.
    ("aws-sigv4", None),
];

pub(crate) fn check(repo: &Repo) -> Result<()> {
    let hot = tree(repo, &["--package", HOT])?;
    let default = tree(repo, &[])?;
    refuse("cargo build --package wasm-cpi-run", &hot, &[&COMPILER[..], &FOR_TESTS[..]].concat())?;
    // If one command built both programs, the hot program would have the tool's features.
    refuse("cargo build", &default, &[&FOR_TESTS[..], &[(HOT, None)]].concat())?;
    if found(&default, &COMPILER).len() < COMPILER.len() {
        bail!(
            "`cargo build` must build the tool with the compiler ({COMPILER:?}), and `cargo tree` does not list all of \
             it; if a name has changed, correct it in xtask/src/features.rs"
        );
    }
    Ok(())
}

/// Returns the packages of a build, one per line, with their features.
fn tree(repo: &Repo, packages: &[&str]) -> Result<String> {
    let mut tree = command::new("cargo");
    tree.current_dir(&repo.root).args(["tree", "--locked", "--edges", "normal,build"]);
    command::read(tree.args(["--prefix", "none", "--format", "{p}|{f}"]).args(packages))
}

fn refuse(command: &str, tree: &str, unwanted: &[Part]) -> Result<()> {
    let found = found(tree, unwanted);
    if !found.is_empty() {
        bail!("`{command}` must not build these packages or features: {}", found.join(", "));
    }
    Ok(())
}

/// Returns the names of the parts that are in the tree.
fn found(tree: &str, parts: &[Part]) -> Vec<String> {
    let has = |(package, feature): &&Part| {
        tree.lines().any(|line| {
            // NAME vVERSION (PATH)|FEATURE,FEATURE (*)
            let (name, features) = line.split_once('|').unwrap_or((line, ""));
            let mut features = features.trim_end_matches(" (*)").split(',');
            name.split(' ').next() == Some(package) && feature.is_none_or(|wanted| features.any(|name| name == wanted))
        })
    };
    let name = |(package, feature): &Part| match feature {
        Some(feature) => format!("{package}/{feature}"),
        None => (*package).to_owned(),
    };
    parts.iter().filter(has).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwanted_feature_or_package_is_named() {
        const CLEAN: &str = "wasm-cpi-run v0.1.0 (/repo/runtime/run)|\nwasm-cpi v0.1.0 (/repo/runtime)|\n\
            wasmtime v48.0.8|async,runtime,std\ncranelift-entity v0.135.8|default (*)\n";
        let unwanted = [&COMPILER[..], &FOR_TESTS[..]].concat();
        refuse("cargo build", CLEAN, &unwanted).unwrap();
        for (line, name) in [
            ("wasm-cpi v0.1.0 (/repo/runtime)|compiler,default", "wasm-cpi/compiler"),
            ("wasm-cpi v0.1.0 (/repo/runtime)|mutation-testing", "wasm-cpi/mutation-testing"),
            ("wasm-cpi v0.1.0 (/repo/runtime)|fuzzing (*)", "wasm-cpi/fuzzing"),
            ("wasm-cpi-checks v0.1.0 (/repo/runtime/checks)|mutation-testing", "wasm-cpi-checks/mutation-testing"),
            ("wasmtime v48.0.8|async,cranelift,runtime", "wasmtime/cranelift"),
            ("cranelift-codegen v0.135.8|default,std", "cranelift-codegen"),
            ("cranelift-codegen v0.135.8|", "cranelift-codegen"),
        ] {
            let error = refuse("cargo build", &format!("{CLEAN}{line}\n"), &unwanted).unwrap_err().to_string();
            assert_eq!(error, format!("`cargo build` must not build these packages or features: {name}"));
        }
    }
}
