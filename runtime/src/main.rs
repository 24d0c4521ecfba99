//! The tool `wasm-cpi`: all subcommands, and the compiler of guests.

fn main() -> std::process::ExitCode {
    wasm_cpi::main()
}
