//! What the job's `bin/cpi` executes: `wasm-cpi run` without the compiler.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use wasm_cpi::ConfigArg;

const USAGE: &str = "usage: wasm-cpi-run --config CPI.json [--packages DIR] [--module NAME] < REQUEST.json
See `wasm-cpi --help` for the commands for people.";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match parse(&arguments) {
        Some(config) if wasm_cpi::run(&config) => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
        None => {
            let _ = writeln!(std::io::stderr(), "{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Reads the arguments of `wasm-cpi run`, each at most once. By hand, as a parser for
/// people's command lines would be paid for in every call.
fn parse(arguments: &[OsString]) -> Option<ConfigArg> {
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
