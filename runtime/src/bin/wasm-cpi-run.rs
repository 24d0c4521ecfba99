//! What the job's `bin/cpi` execs: `wasm-cpi run` without the compiler.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [flag, config] if flag == "--config" => wasm_cpi::commands::run::run(Path::new(config)),
        _ => {
            use std::io::Write as _;
            let _ = writeln!(
                std::io::stderr(),
                "usage: wasm-cpi-run --config CPI.json < REQUEST.json\nSee `wasm-cpi --help` for the commands for people."
            );
            ExitCode::from(2)
        }
    }
}
