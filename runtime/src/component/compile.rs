//! The compiling child: `wasm-cpi compile-guest`, which the runtime starts.
//!
//! Before it reads a byte of the guest, it drops its privileges, lowers its limits of memory and
//! time, and loses access to files and the network. It compiles and sends the artifact. Then it
//! allows only a few system calls, and runs the guest's `describe`, where all imports of
//! `bosh:cpi` are denied.

use crate::bindings::CpiPre;
use crate::component::child::{ChildFailure, Frame, write_frame};
use crate::component::description::{Declared, Described};
use crate::component::panic_report;
use crate::component::surface::{self, Surface};
use crate::failure::{Failure, Problem, Who};
use crate::hardening::{Hardening, LockDownError, LockDownReport, Network, landlock, process, seccomp};
use crate::host;
use crate::host::State;
use crate::limits::Limits;
use crate::rpc::method::Method;
use crate::sandbox::ending::Ending;
use crate::sandbox::{engine, trap, watchdog};
use crate::startup;
use rustix::io::Errno;
use rustix::process::{Resource, Signal};
use std::io::{Read, Write};
use std::sync::Arc;
use wasm_cpi_checks::Check;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// The user ID of `nobody`, who runs the guest's code if root starts the child.
const NOBODY: u32 = 65_534;

/// The time for `describe`, which has nothing to wait for.
const DESCRIBE_SECONDS: u64 = 10;

/// The most threads that compile. Each reserves address space, so that more of them would need
/// another `compile_mib` on a larger machine.
const MAX_THREADS: usize = 8;

/// Reads wasm from stdin and writes frames to stdout. `limits` are those of the operator, as JSON.
pub fn compile_guest(limits: &str, hardening: Hardening) -> std::io::Result<()> {
    startup::secure_process();
    panic_report::install();
    let limits: Limits = serde_json::from_str(limits)?;
    let mut out = std::io::stdout().lock();
    if let Err(error) = drop_privileges(limits.compile_mib, limits.compile_seconds) {
        let remedy = "run the CPI as a user other than root, or let root change its user (setuid, setgroups)";
        let what = "the guest was not compiled, because the compiling process cannot drop its privileges";
        let refusal = config_failure(format!("{what}: {error}; {remedy}"));
        return write_frame(&mut out, Frame::Error, &serde_json::to_vec(&refusal)?);
    }
    process::open_random_source();
    // The process is restricted before it compiles, because compiling starts threads. The compiler
    // reads no file.
    let landlock = (hardening != Hardening::Off).then(|| landlock::restrict(&Network::None));
    let answer = panic_report::catch(|| compile_and_describe(limits, hardening, landlock, &mut out));
    match answer {
        Ok(description) => write_frame(&mut out, Frame::Description, &serde_json::to_vec(&description)?),
        Err(refusal) => write_frame(&mut out, Frame::Error, &serde_json::to_vec(&refusal)?),
    }?;
    out.flush()
}

/// Reads and compiles the guest, sends the artifact, and runs `describe` within the operator's
/// limits. Only its time is fixed.
fn compile_and_describe(
    limits: Limits,
    hardening: Hardening,
    landlock: Option<Result<landlock::Landlock, LockDownError>>,
    out: &mut impl Write,
) -> Result<Described, ChildFailure> {
    let seconds = Check::DescribeTime.choose(DESCRIBE_SECONDS, limits.compile_seconds);
    let limits = Limits { wall_seconds: seconds, cpu_seconds: seconds, cleanup_seconds: 1, ..limits }.lifted();
    let mut wasm = Vec::new();
    std::io::stdin().lock().read_to_end(&mut wasm).map_err(|error| match error.kind() {
        std::io::ErrorKind::OutOfMemory => out_of_memory(&limits),
        _ => config_failure(format!("the guest cannot be read: {error}")),
    })?;
    start_threads(&limits)?;
    let (engine, component, surface, artifact) = compile(&wasm, &limits)?;
    let declared = Declared { needs: surface.needs, has_names: surface.has_names };
    let declared = serde_json::to_vec(&declared).map_err(|error| config_failure(error.to_string()))?;
    for (frame, bytes) in [(Frame::Declared, &declared), (Frame::Artifact, &artifact)] {
        write_frame(out, frame, bytes).map_err(|error| config_failure(error.to_string()))?;
    }
    watchdog::start(&engine).map_err(|error| config_failure(error.to_string()))?;
    lock_down(hardening, landlock)?;
    describe(&engine, &component, &limits)
}

fn drop_privileges(compile_mib: u64, compile_seconds: u64) -> std::io::Result<()> {
    // wasmtime keeps the initial memory of a guest in an in-memory file, so files must not be forbidden.
    startup::lower_limit(Resource::Fsize, compile_mib << 20)?;
    // At the soft limit the kernel sends SIGXCPU, by which the parent recognises the limit.
    let cpu_seconds = compile_seconds.saturating_mul(2);
    startup::lower_limits(Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(5))?;
    startup::lower_limit(Resource::As, compile_mib << 20)?;
    if Check::ChildUser.refuses(rustix::process::geteuid().is_root()) {
        startup::change_user(NOBODY, NOBODY)?;
    }
    Check::ChildPrivileges.perform(|| rustix::thread::set_no_new_privs(true)).transpose()?;
    let _ = process::drop_capabilities();
    // Set after the change of user, which clears it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Locks the process down before `describe` runs. The compiled code is mapped already, so no new
/// code, process, file or socket is needed.
fn lock_down(
    hardening: Hardening,
    landlock: Option<Result<landlock::Landlock, LockDownError>>,
) -> Result<(), ChildFailure> {
    if let Some(landlock) = landlock {
        let seccomp = seccomp::install(&Network::None, seccomp::Writes::Nothing, seccomp::Threads::All);
        let report =
            LockDownReport { no_new_privs: Ok(()), capabilities: Ok(()), landlock, seccomp, network: Network::None };
        if hardening == Hardening::Required {
            report.ensure_complete().map_err(|failure| config_failure(failure.message))?;
        }
    }
    #[cfg(feature = "mutation-testing")]
    crate::hardening::hook::run(crate::hardening::hook::Role::Child);
    Ok(())
}

fn config_failure(message: String) -> ChildFailure {
    ChildFailure::from(Failure::config(message))
}

/// Returns the refusal for an error of the engine, which is about the memory limit if the kernel had no more memory.
fn classify(
    error: wasmtime::Error,
    limits: &Limits,
    otherwise: impl FnOnce(wasmtime::Error) -> ChildFailure,
) -> ChildFailure {
    let cause = error.root_cause();
    let system = cause.downcast_ref::<std::io::Error>().and_then(Errno::from_io_error);
    match cause.downcast_ref::<Errno>().copied().or(system) {
        Some(Errno::NOMEM) => out_of_memory(limits),
        _ => otherwise(error),
    }
}

fn out_of_memory(limits: &Limits) -> ChildFailure {
    Failure::limit("compile_mib", limits.compile_mib, "compiling the guest").into()
}

/// Starts the threads of the compiler, which would otherwise panic if there is no memory for one.
fn start_threads(limits: &Limits) -> Result<(), ChildFailure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().map_err(|_| out_of_memory(limits))
}

fn compile(wasm: &[u8], limits: &Limits) -> Result<(Engine, Component, Surface, Vec<u8>), ChildFailure> {
    let surface = surface::inspect(wasm).map_err(|problems| surface::to_failure("the guest", &problems))?;
    let failed =
        |error| classify(error, limits, |error| config_failure(format!("the guest cannot be compiled: {error:#}")));
    let engine = engine::build(limits).map_err(failed)?;
    let artifact = engine.precompile_component(wasm).map_err(failed)?;
    // SAFETY: this process compiled the artifact just now, and no guest code has run.
    #[allow(unsafe_code)]
    let component = unsafe { Component::deserialize(&engine, &artifact) }.map_err(failed)?;
    Ok((engine, component, surface, artifact))
}

fn describe(engine: &Engine, component: &Component, limits: &Limits) -> Result<Described, ChildFailure> {
    let unfit = |error| {
        config_failure(format!(
            "the guest does not fit the world bosh:cpi: {error:#}; build it with this runtime's SDK"
        ))
    };
    let failed = |error| classify(error, limits, unfit);
    let ending = Arc::new(Ending::new(limits, Method::Info));
    let mut store = State::bare(limits, Arc::clone(&ending)).into_store(engine, limits);
    let mut linker = Linker::new(engine);
    // The state has no capabilities, so the interfaces of `bosh:cpi` deny everything.
    host::link(&mut linker, component).map_err(failed)?;
    let pre = CpiPre::new(linker.instantiate_pre(component).map_err(failed)?).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| config_failure(error.to_string()))?;
    let described = runtime.block_on(async {
        tokio::select! {
            described = call_describe(&pre, &mut store) => described,
            () = ending.cleanup_over() => Err(wasmtime::Error::msg(format!("it took longer than {} s", limits.wall_seconds))),
            never = watchdog::check_periodically(&ending) => match never {},
        }
    });
    let trapped = |error| {
        let failure = trap::explain(error, ending.reason(), "describe", limits);
        // The failure of a limit does not name the method.
        let message = match failure.who {
            Who::Guest => failure.message,
            _ => format!("`describe` failed: {}", failure.message),
        };
        ChildFailure::from(Failure { message, ..failure })
    };
    let described = described.map_err(|error| classify(error, limits, trapped))?;
    let described = Described {
        name: described.name,
        version: described.version,
        stemcell_formats: described.stemcell_formats,
        methods: described.methods,
    };
    described.check().map_err(|Problem { text, check }| Failure { check, ..Failure::guest(text) })?;
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
    fn only_an_out_of_memory_error_of_the_kernel_is_classified_as_such() {
        let no_memory = Errno::NOMEM.raw_os_error();
        for (error, expected) in [
            (wasmtime::Error::from(Errno::NOMEM).context("mmap failed"), true),
            (std::io::Error::from_raw_os_error(no_memory).into(), true),
            (wasmtime::Error::from(Errno::PERM), false),
            (wasmtime::Error::msg(std::io::Error::from_raw_os_error(no_memory).to_string()), false),
        ] {
            let refusal = classify(error, &Limits::default(), |error| config_failure(error.to_string()));
            assert_eq!(refusal.who == Who::Limit, expected, "{refusal:?}");
        }
    }
}
