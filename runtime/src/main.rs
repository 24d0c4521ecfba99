//! The tool: all commands for people, and the compiler.

fn main() -> std::process::ExitCode {
    wasm_cpi::main()
}
