//! The built programs and guests, in the directory where `cargo xtask build` puts them.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The environment variable that names the directory; `cargo xtask test` sets it.
const VARIABLE: &str = "WASM_CPI_DIST";

/// Returns the root directory of the repository.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

fn file(name: &str) -> PathBuf {
    let dist = std::env::var_os(VARIABLE).map_or_else(|| root().join("target/dist"), PathBuf::from);
    let path = dist.join(name);
    assert!(path.is_file(), "{} does not exist: run `cargo xtask build`", path.display());
    path.canonicalize().unwrap_or(path)
}

/// Returns the path of `wasm-cpi-run`, the program that a job's `bin/cpi` executes.
pub fn hot() -> PathBuf {
    file("wasm-cpi-run")
}

/// Returns the path of `wasm-cpi`, the tool that contains the compiler.
pub fn tool() -> PathBuf {
    file("wasm-cpi")
}

/// Returns the directory of the programs for mutation tests, in which tests can turn
/// checks off and run their own code. `cargo xtask test` builds them and sets the
/// environment variable `WASM_CPI_MUTANTS_DIST`.
pub fn mutants() -> PathBuf {
    let dist =
        std::env::var_os("WASM_CPI_MUTANTS_DIST").map_or_else(|| root().join("target/dist-mutants"), PathBuf::from);
    for name in ["wasm-cpi-run", "wasm-cpi"] {
        let path = dist.join(name);
        assert!(path.is_file(), "{} does not exist: run `cargo xtask test --only it`", path.display());
    }
    dist.canonicalize().unwrap_or(dist)
}

/// Returns the path of the guest that runs scripts of host calls.
pub fn probe() -> PathBuf {
    file("probe.wasm")
}

/// Returns the path of the CPI for OpenStack.
pub fn openstack() -> PathBuf {
    file("openstack.wasm")
}

/// Returns the path of the CPI for AWS.
pub fn aws() -> PathBuf {
    file("aws.wasm")
}

pub fn probe_sha256() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| sha256_of(&probe()))
}

pub fn sha256_of(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    sha256(&bytes)
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a cache that contains the prepared probe. It is filled once and shared by
/// all tests that do not tamper with it. It is stored next to the test program, so
/// that `cargo clean` removes it, and belongs to one build of the programs.
pub fn shared_cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let binaries: String = [hot(), tool()].iter().map(|path| sha256_of(path)).collect();
        let beside = std::env::current_exe().unwrap_or_else(|error| panic!("this program's path: {error}"));
        let cache = beside.with_file_name(format!("prepared-{}", &sha256(binaries.as_bytes())[..16]));
        let answer = crate::Job::new().cache(&cache).call("info", serde_json::json!([])).run();
        assert_eq!(answer.result()["stemcell_formats"], serde_json::json!(["probe-raw"]));
        cache
    })
}
