//! What the job's `bin/cpi` execs: `wasm-cpi run` without the compiler.
//!
//! It begins where the C library does. Rust's own beginning reads a table of all
//! mappings to find the end of the stack, for a message when it overflows: a call has
//! no use for that. What else it does, `hardening::process` does.

#![no_main]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use wasm_cpi::arena::Arena;
use wasm_cpi::config::ConfigArg;
use wasm_cpi::hardening;

/// How it is laid out; another one is another build.
const _: &str = include_str!("../../hot.order");

#[global_allocator]
static MEMORY: Arena = Arena;

/// # Safety
/// Called by the C library alone, with so many words.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    if !hardening::process::instead_of_rusts_beginning() {
        return 1;
    }
    Arena::begin();
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: there are so many, and each ends.
    let word = |at: usize| unsafe { CStr::from_ptr(*words.add(at)) };
    let arguments: Vec<OsString> = (1..count).map(|at| OsStr::from_bytes(word(at).to_bytes()).to_owned()).collect();
    match read(&arguments) {
        Some(config) => c_int::from(!wasm_cpi::commands::run::run(&config)),
        None => {
            use std::io::Write as _;
            let _ = writeln!(
                std::io::stderr(),
                "usage: wasm-cpi-run --config CPI.json [--packages DIR] [--module NAME] < REQUEST.json\n\
                 See `wasm-cpi --help` for the commands for people."
            );
            2
        }
    }
}

/// The words of `wasm-cpi run`, each at most once.
fn read(arguments: &[OsString]) -> Option<ConfigArg> {
    let (mut config, mut packages, mut module) = (None, None, None);
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { return None };
        let place = match flag.to_str()? {
            "--config" => &mut config,
            "--packages" => &mut packages,
            "--module" => &mut module,
            _ => return None,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    let module = module.map(|name| name.to_str().map(str::to_owned)).map_or(Some(None), |name| name.map(Some))?;
    Some(ConfigArg { packages: packages.map(Into::into), module, ..ConfigArg::new(Path::new(config?)) })
}
