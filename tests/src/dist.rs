//! The built binaries and guests, where `cargo xtask build` puts them.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names the directory; `cargo xtask test` sets it.
const VARIABLE: &str = "WASM_CPI_DIST";

/// The repository.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

fn file(name: &str) -> PathBuf {
    let dist = std::env::var_os(VARIABLE).map_or_else(|| root().join("target/dist"), PathBuf::from);
    let path = dist.join(name);
    assert!(path.is_file(), "{} is not there: run `cargo xtask build`", path.display());
    path.canonicalize().unwrap_or(path)
}

/// What the job's `bin/cpi` execs.
pub fn hot() -> PathBuf {
    file("wasm-cpi-run")
}

/// The tool, with the compiler.
pub fn tool() -> PathBuf {
    file("wasm-cpi")
}

/// Programs in which tests can turn checks off and run code of their own, from
/// `WASM_CPI_HOLES_DIST`; `cargo xtask test` builds them and sets it.
pub fn holes() -> PathBuf {
    let dist = std::env::var_os("WASM_CPI_HOLES_DIST").map_or_else(|| root().join("target/dist-holes"), PathBuf::from);
    for name in ["wasm-cpi-run", "wasm-cpi"] {
        let path = dist.join(name);
        assert!(path.is_file(), "{} is not there: run `cargo xtask test --only it`", path.display());
    }
    dist.canonicalize().unwrap_or(dist)
}

/// The guest that runs scripts of host calls.
pub fn probe() -> PathBuf {
    file("probe.wasm")
}

/// The guest that is a CPI.
pub fn openstack() -> PathBuf {
    file("openstack.wasm")
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

/// A cache in which the probe is prepared, filled once and shared by all tests
/// that do not tamper with it. It lies beside the test binary, so that
/// `cargo clean` takes it away, and belongs to one build of the binaries.
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
