//! libFuzzer: finds its sources, and compiles them once into `target/fuzz`.

use crate::command;
use crate::files;
use crate::repo::Repo;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// The manifest that pins the crate with the sources.
const MANIFEST: &str = "tests/fuzz/engine/Cargo.toml";

/// This file works only in dynamically linked programs.
const LEFT_OUT: &str = "FuzzerInterceptors.cpp";

/// Compiles libFuzzer if needed; returns the path of a file with link arguments for the compiler.
pub(super) fn link_arguments(repo: &Repo) -> Result<PathBuf> {
    let mut sources = sources(repo)?;
    sources.push(repo.root.join("tests/fuzz/engine/compare.cpp"));
    let directory = repo.root.join("target/fuzz/engine");
    files::directory(&directory, 0o755)?;
    let pairs: Vec<(PathBuf, PathBuf)> =
        sources.into_iter().map(|source| (object(&directory, &source), source)).collect();
    let stale: Vec<&(PathBuf, PathBuf)> = pairs.iter().filter(|(object, source)| !is_newer(object, source)).collect();
    if !stale.is_empty() {
        let compiler = compiler()?;
        eprintln!("    compiling {} files of libFuzzer with {compiler}; later runs reuse them", stale.len());
        let share = stale.len().div_ceil(thread::available_parallelism().map_or(1, usize::from));
        thread::scope(|scope| {
            let compile = |pairs: &[&(PathBuf, PathBuf)]| pairs.iter().try_for_each(|pair| compile(&compiler, pair));
            let workers: Vec<_> = stale.chunks(share).map(|pairs| scope.spawn(move || compile(pairs))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a thread panicked"))?)
        })?;
    }
    let mut arguments: Vec<String> =
        pairs.iter().map(|(object, _)| format!("-Clink-arg={}", object.display())).collect();
    arguments.extend(["-lstdc++", "-Clink-arg=-Wl,--wrap=memcmp", "-Clink-arg=-Wl,--wrap=bcmp"].map(str::to_owned));
    let file = directory.join("arguments");
    files::write(&file, &arguments.join("\n"), 0o644)?;
    Ok(file)
}

/// Returns the C++ files of the crate, in the directory where cargo unpacked it.
fn sources(repo: &Repo) -> Result<Vec<PathBuf>> {
    let mut metadata = command::new("cargo");
    metadata.current_dir(&repo.root).args(["metadata", "--format-version=1", "--locked", "--manifest-path", MANIFEST]);
    let metadata: Value = serde_json::from_str(&command::read(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == "libfuzzer-sys")
        .find_map(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifest.with_context(|| format!("{MANIFEST} does not depend on libfuzzer-sys"))?);
    let directory = manifest.with_file_name("libfuzzer");
    let entries = fs::read_dir(&directory);
    let entries = entries.with_context(|| format!("the sources in {} cannot be read", directory.display()))?;
    let mut sources = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cpp") && !path.ends_with(LEFT_OUT) {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

fn object(directory: &Path, source: &Path) -> PathBuf {
    directory.join(source.file_name().unwrap_or_default()).with_extension("o")
}

fn is_newer(object: &Path, source: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    matches!((time(object), time(source)), (Some(object), Some(source)) if object >= source)
}

fn compiler() -> Result<String> {
    let works = |name: &&str| command::read(command::new(name).arg("--version")).is_ok();
    match ["c++", "g++", "clang++"].iter().find(|name| works(name)) {
        Some(name) => Ok((*name).to_owned()),
        None => bail!(
            "libFuzzer needs a C++ compiler, and none of c++, g++ and clang++ was found; run one of these, then try again:\n  \
             sudo apt-get install g++    (on Debian)\n  sudo dnf install gcc-c++    (on Fedora)"
        ),
    }
}

fn compile(compiler: &str, (object, source): &(PathBuf, PathBuf)) -> Result<()> {
    // Renamed when complete: an incomplete object file would be newer than its source, too.
    let incomplete = object.with_extension("new");
    let mut compile = command::new(compiler);
    compile.args(["-std=c++17", "-O2", "-fno-omit-frame-pointer", "-w", "-c", "-o"]).arg(&incomplete).arg(source);
    command::read(&mut compile)?;
    fs::rename(&incomplete, object).with_context(|| format!("{} cannot be renamed", incomplete.display()))
}
