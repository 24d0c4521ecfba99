//! What the job's `bin/cpi` execs: `wasm-cpi run` without the compiler.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use wasm_cpi::arena::Arena;
use wasm_cpi::config::ConfigArg;

/// How it is laid out; another one is another build.
const _: &str = include_str!("../../hot.order");

#[global_allocator]
static MEMORY: Arena = Arena;

fn main() -> ExitCode {
    Arena::begin();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match read(&arguments) {
        Some(config) => wasm_cpi::commands::run::run(&config),
        None => {
            use std::io::Write as _;
            let _ = writeln!(
                std::io::stderr(),
                "usage: wasm-cpi-run --config CPI.json [--packages DIR] [--module NAME] < REQUEST.json\n\
                 See `wasm-cpi --help` for the commands for people."
            );
            ExitCode::from(2)
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
