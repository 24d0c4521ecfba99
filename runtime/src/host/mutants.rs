//! What the sandbox would offer without a check, where leaving the check out is not
//! enough. For mutation tests alone: no program that ships has it.

use crate::host::State;
use wasm_cpi_checks::Check;
use wasmtime::component::{Component, Linker};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem;
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

/// WASI as other programs give it.
pub fn context(wasi: &mut WasiCtxBuilder) {
    if !Check::WasiEnvironment.on() {
        wasi.inherit_env();
    }
    if !Check::WasiArguments.on() {
        wasi.inherit_args();
    }
    if !Check::WasiFilesystem.on() {
        // Who may not open it has no files either.
        let _ = wasi.preopened_dir("/", "/", FsPerms::ReadWrite);
    }
}

/// Returns true if the guest gets the environment or the arguments of this process.
pub fn environment() -> bool {
    !Check::WasiEnvironment.on() || !Check::WasiArguments.on()
}

/// Says whether the interface is the real one now.
pub fn files(linker: &mut Linker<State>, name: &str) -> wasmtime::Result<bool> {
    if Check::WasiFilesystem.on() || !name.starts_with("wasi:filesystem/") {
        return Ok(false);
    }
    if name.starts_with("wasi:filesystem/types@") {
        filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    } else {
        filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    }
    Ok(true)
}

/// Takes a module whatever it imports.
pub fn any_import(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    if Check::Imports.on() { Ok(()) } else { linker.define_unknown_imports_as_traps(component) }
}

pub fn exit_counts(error: &wasmtime::Error) -> bool {
    !Check::ExitIsFailure.on() && error.downcast_ref::<I32Exit>().is_some_and(|exit| exit.0 == 0)
}
