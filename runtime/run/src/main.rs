//! The program that a job's `bin/cpi` executes: `wasm-cpi run` without the compiler.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use wasm_cpi::ConfigSource;

const USAGE: &str = "usage: wasm-cpi-run --config CPI.json [--packages DIR] [--module NAME] < REQUEST.json
`wasm-cpi --help` lists the commands for operators and authors.";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments == ["--version"] {
        let _ = writeln!(std::io::stdout(), concat!("wasm-cpi-run ", env!("CARGO_PKG_VERSION")));
        return ExitCode::SUCCESS;
    }
    match parse(&arguments) {
        Some(config) if wasm_cpi::run(&config) => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
        None => {
            let _ = writeln!(std::io::stderr(), "{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Parses the arguments. Returns `None` if an option is unknown, repeated or without a value.
/// No parser library is used, because it would delay every call.
fn parse(arguments: &[OsString]) -> Option<ConfigSource> {
    let (mut config, mut packages, mut module) = (None, None, None);
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { return None };
        let option = match flag.to_str()? {
            "--config" => &mut config,
            "--packages" => &mut packages,
            "--module" => &mut module,
            _ => return None,
        };
        if option.replace(value).is_some() {
            return None;
        }
    }
    // A module's name that is not UTF-8 is a wrong value, not an absent option.
    let module = match module {
        Some(name) => Some(name.to_str()?.to_owned()),
        None => None,
    };
    Some(ConfigSource { packages: packages.map(Into::into), module, ..ConfigSource::new(Path::new(config?)) })
}
