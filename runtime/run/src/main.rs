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
        Ok(config) if wasm_cpi::run(&config) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(what) => {
            let _ = writeln!(std::io::stderr(), "wasm-cpi-run: {what}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Parses the arguments, or returns what is wrong with them. No parser library is used, because it
/// would delay every call.
fn parse(arguments: &[OsString]) -> Result<ConfigSource, String> {
    let (mut config, mut packages, mut module) = (None, None, None);
    for pair in arguments.chunks(2) {
        let flag = pair[0].to_string_lossy();
        let option = match flag.as_ref() {
            "--config" => &mut config,
            "--packages" => &mut packages,
            "--module" => &mut module,
            _ => return Err(format!("{flag:?} is not an option")),
        };
        let [_, value] = pair else { return Err(format!("{flag} has no value")) };
        if option.replace(value).is_some() {
            return Err(format!("{flag} is given twice"));
        }
    }
    let Some(config) = config else { return Err("--config is missing".to_owned()) };
    let module = match module.map(|name| name.to_str().ok_or("the name after --module is not UTF-8")) {
        Some(name) => Some(name?.to_owned()),
        None => None,
    };
    Ok(ConfigSource { packages: packages.map(Into::into), module, ..ConfigSource::new(Path::new(config)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<ConfigSource, String> {
        parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_wrong_option_is_named() {
        for (arguments, what) in [
            (&["--config", "a", "--modul", "m"][..], "\"--modul\" is not an option"),
            (&["--config", "a", "--module"], "--module has no value"),
            (&["--config", "a", "--config", "b"], "--config is given twice"),
            (&["--module", "m"], "--config is missing"),
            (&[], "--config is missing"),
            (&["--help"], "\"--help\" is not an option"),
        ] {
            assert_eq!(parsed(arguments).err().as_deref(), Some(what), "{arguments:?}");
        }
    }

    #[test]
    fn options_are_read_in_any_order() {
        let source = parsed(&["--module", "m", "--config", "a", "--packages", "p"]).unwrap();
        assert_eq!((source.path.as_path(), source.module.as_deref()), (Path::new("a"), Some("m")));
    }
}
