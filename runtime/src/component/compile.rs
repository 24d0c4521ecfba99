//! The compiling child itself: `wasm-cpi compile-guest`, never called by hand.
//!
//! It gives up what it has before it reads a byte of the stranger's: privileges,
//! memory and time beyond its limits, files, the network. It compiles and hands
//! the artifact over; then it gives up all system calls but a few, and runs the
//! guest's `describe`, with every import of ours denied.

use crate::bindings::CpiPre;
use crate::component::child::{Frame, Refusal, write_frame};
use crate::component::description::{Declared, Described};
use crate::component::surface::{self, Surface};
use crate::hardening::{Hardening, Network, WallError, Walls, landlock, process, seccomp};
use crate::host;
use crate::host::State;
use crate::limits::Limits;
use crate::rpc::method::Method;
use crate::sandbox::ending::Ending;
use crate::sandbox::{engine, trap, watchdog};
use crate::startup;
use rustix::io::Errno;
use rustix::process::{Resource, Signal};
use rustix::thread::{Gid, Uid};
use std::io::{Read, Write};
use std::sync::Arc;
use wasm_cpi_checks::Check;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// Who runs strangers' code when root asks for it: nobody.
const NOBODY: u32 = 65_534;

/// `describe` has nothing to wait for.
const DESCRIBE_SECONDS: u64 = 10;

/// Why a guest is not compiled or not described.
enum CompileError {
    OutOfMemory,
    Refused(Refusal),
}

impl From<Refusal> for CompileError {
    fn from(refusal: Refusal) -> Self {
        CompileError::Refused(refusal)
    }
}

/// Reads wasm from stdin, answers frames on stdout.
pub fn compile_guest(
    compile_mib: u64,
    compile_seconds: u64,
    memory_mib: u64,
    hardening: Hardening,
) -> std::io::Result<()> {
    startup::secure_process();
    let mut out = std::io::stdout().lock();
    if let Err(error) = give_up_rights(compile_mib, compile_seconds) {
        let remedy = "run the CPI as a user other than root, or let root change its user (setuid, setgroups)";
        let what = "not compiled, as the compiling process cannot give up its rights";
        let refusal = refusal(format!("{what}: {error}; {remedy}"));
        return write_frame(&mut out, Frame::Error, &serde_json::to_vec(&refusal)?);
    }
    process::first_uses();
    // Now, as compiling starts threads; the compiler reads no file.
    let landlock = (hardening != Hardening::Off).then(|| landlock::restrict(&Network::None));
    let mut wasm = Vec::new();
    std::io::stdin().lock().read_to_end(&mut wasm)?;
    let seconds = if Check::DescribeTime.on() { DESCRIBE_SECONDS } else { compile_seconds };
    let limits =
        Limits { memory_mib, wall_seconds: seconds, cpu_seconds: seconds, cleanup_seconds: 1, ..Limits::default() }
            .lifted();
    let answer = compile(&wasm, &limits).and_then(|(engine, component, surface, artifact)| {
        let declared = Declared { needs: surface.needs, has_names: surface.has_names };
        let declared = serde_json::to_vec(&declared).map_err(|error| refusal(error.to_string()))?;
        for (frame, bytes) in [(Frame::Surface, &declared), (Frame::Artifact, &artifact)] {
            write_frame(&mut out, frame, bytes).map_err(|error| refusal(error.to_string()))?;
        }
        watchdog::start(&engine).map_err(|error| refusal(error.to_string()))?;
        wall_in(hardening, landlock)?;
        describe(&engine, &component, &limits)
    });
    match answer {
        Ok(description) => write_frame(&mut out, Frame::Description, &serde_json::to_vec(&description)?),
        // As any allocation that fails: whoever waits for the answer knows the limit.
        Err(CompileError::OutOfMemory) => Err(std::io::ErrorKind::OutOfMemory.into()),
        Err(CompileError::Refused(refusal)) => write_frame(&mut out, Frame::Error, &serde_json::to_vec(&refusal)?),
    }?;
    out.flush()
}

fn give_up_rights(compile_mib: u64, compile_seconds: u64) -> std::io::Result<()> {
    // The initial memory of a guest is a file in memory, so some there must be.
    startup::lower(Resource::Fsize, compile_mib << 20)?;
    startup::lower(Resource::Cpu, compile_seconds.saturating_mul(2))?;
    startup::lower(Resource::As, compile_mib << 20)?;
    if Check::ChildUser.on() && rustix::process::geteuid().is_root() {
        drop_to(NOBODY, NOBODY)?;
    }
    if Check::ChildPrivileges.on() {
        rustix::thread::set_no_new_privs(true)?;
    }
    // After the change of user, which clears it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// What was compiled is mapped: no more code from here on, and no other process,
/// file or socket.
fn wall_in(hardening: Hardening, landlock: Option<Result<landlock::Landlock, WallError>>) -> Result<(), Refusal> {
    if let Some(landlock) = landlock {
        let seccomp = seccomp::install(&Network::None, seccomp::Threads::All);
        let walls = Walls { no_new_privs: Ok(()), landlock, seccomp, network: Network::None };
        if hardening == Hardening::Required {
            walls.demand().map_err(|failure| refusal(failure.message))?;
        }
    }
    #[cfg(feature = "holes")]
    crate::hardening::hook::run(crate::hardening::hook::Whose::Child);
    Ok(())
}

/// Becomes another user for good. Only before any other thread exists.
pub fn drop_to(uid: u32, gid: u32) -> std::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::thread::set_thread_groups(&[gid])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

fn refusal(message: String) -> Refusal {
    Refusal { guest: false, message, detail: String::new() }
}

/// The refusal, unless the engine failed because the kernel has no more memory within the limit.
fn failure_of(error: wasmtime::Error, refusal: impl FnOnce(wasmtime::Error) -> Refusal) -> CompileError {
    let cause = error.root_cause();
    let system = cause.downcast_ref::<std::io::Error>().and_then(Errno::from_io_error);
    match cause.downcast_ref::<Errno>().copied().or(system) {
        Some(Errno::NOMEM) => CompileError::OutOfMemory,
        _ => CompileError::Refused(refusal(error)),
    }
}

fn compile(wasm: &[u8], limits: &Limits) -> Result<(Engine, Component, Surface, Vec<u8>), CompileError> {
    let surface = surface::inspect(wasm).map_err(|problems| Refusal {
        detail: problems.join("\n"),
        ..refusal(format!("the module {}", problems.join("; it ")))
    })?;
    let failed = |error| failure_of(error, |error| refusal(format!("the module cannot be compiled: {error:#}")));
    let engine = engine::engine(limits).map_err(failed)?;
    let artifact = engine.precompile_component(wasm).map_err(failed)?;
    // SAFETY: compiled by this process a moment ago, no guest code ran.
    #[allow(unsafe_code)]
    let component = unsafe { Component::deserialize(&engine, &artifact) }.map_err(failed)?;
    Ok((engine, component, surface, artifact))
}

fn describe(engine: &Engine, component: &Component, limits: &Limits) -> Result<Described, CompileError> {
    let unfit = |error| refusal(format!("the module does not fit the world bosh:cpi: {error:#}"));
    let failed = |error| failure_of(error, unfit);
    let ending = Arc::new(Ending::new(limits, Method::Info));
    let mut store = State::bare(limits, Arc::clone(&ending)).into_store(engine, limits);
    let mut linker = Linker::new(engine);
    // Without a host behind them, our own interfaces deny everything.
    host::link(&mut linker, component).map_err(failed)?;
    let pre = CpiPre::new(linker.instantiate_pre(component).map_err(failed)?).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refusal(error.to_string()))?;
    let described = runtime.block_on(async {
        tokio::select! {
            described = call_describe(&pre, &mut store) => described,
            () = ending.over() => Err(wasmtime::Error::msg("it took too long")),
            never = watchdog::watch(&ending) => match never {},
        }
    });
    let trapped = |error| {
        let failure = trap::explain(error, ending.why(), "describe", limits);
        Refusal { guest: true, message: format!("`describe` failed: {}", failure.message), detail: failure.detail }
    };
    let described = described.map_err(|error| failure_of(error, trapped))?;
    let described = Described {
        name: described.name,
        version: described.version,
        stemcell_formats: described.stemcell_formats,
        methods: described.methods,
    };
    described.check().map_err(|message| Refusal { guest: true, message, detail: String::new() })?;
    Ok(described)
}

async fn call_describe(
    pre: &CpiPre<State>,
    store: &mut Store<State>,
) -> wasmtime::Result<crate::bindings::exports::bosh::cpi::describe::Description> {
    let guest = pre.instantiate_async(&mut *store).await?;
    guest.bosh_cpi_describe().call_describe(store).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_has_no_memory_for_is_out_of_memory() {
        let no_memory = Errno::NOMEM.raw_os_error();
        for (error, expected) in [
            (wasmtime::Error::from(Errno::NOMEM).context("mmap failed"), true),
            (std::io::Error::from_raw_os_error(no_memory).into(), true),
            (wasmtime::Error::from(Errno::PERM), false),
            (wasmtime::Error::msg(std::io::Error::from_raw_os_error(no_memory).to_string()), false),
        ] {
            let failure = failure_of(error, |error| refusal(error.to_string()));
            assert_eq!(matches!(failure, CompileError::OutOfMemory), expected);
        }
    }
}
