//! What the sandbox offers if a mutation test turns a check off, where skipping the check is not
//! enough. No program that ships has this module.

use crate::host::GuestState;
use wasm_cpi_checks::Check;
use wasmtime::component::{Component, Linker};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::filesystem;
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

/// Adds what most programs give to a guest: environment, arguments and files.
pub fn context(wasi: &mut WasiCtxBuilder) {
    if Check::WasiEnvironment.is_off() {
        wasi.inherit_env();
    }
    if Check::WasiArguments.is_off() {
        wasi.inherit_args();
    }
    if Check::WasiFilesystem.is_off() {
        // A user who may not open `/` gets no files.
        let _ = wasi.preopened_dir("/", "/", FsPerms::ReadWrite);
    }
}

/// Returns true if the guest gets the environment or the arguments of this process.
pub fn environment() -> bool {
    Check::WasiEnvironment.is_off() || Check::WasiArguments.is_off()
}

/// Links the real file system. Returns true if it did.
pub fn files(linker: &mut Linker<GuestState>, name: &str) -> wasmtime::Result<bool> {
    if !Check::WasiFilesystem.is_off() || !name.starts_with("wasi:filesystem/") {
        return Ok(false);
    }
    if name.starts_with("wasi:filesystem/types@") {
        filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, GuestState::filesystem)?;
    } else {
        filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, GuestState::filesystem)?;
    }
    Ok(true)
}

/// Accepts a guest with any imports.
pub fn any_import(linker: &mut Linker<GuestState>, component: &Component) -> wasmtime::Result<()> {
    if Check::Imports.is_off() { linker.define_unknown_imports_as_traps(component) } else { Ok(()) }
}

pub fn exit_is_success(error: &wasmtime::Error) -> bool {
    Check::ExitIsFailure.is_off() && error.downcast_ref::<I32Exit>().is_some_and(|exit| exit.0 == 0)
}
