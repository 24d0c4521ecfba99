//! The compiling child: `wasm-cpi compile-guest`, which the runtime starts.
//!
//! Before it reads a byte of the guest, it drops its privileges, lowers its limits of memory and
//! time, and loses access to files and the network. It compiles and sends the artifact. Then it
//! allows only a few system calls, and runs the guest's `describe`, where `http`, `agent`,
//! `registry` and `image` are denied.

use crate::bindings::CpiPre;
use crate::component::child::{ChildFailure, Frame, write_frame};
use crate::component::declarations::{self, Declarations};
use crate::component::description::{Declared, Described};
use crate::component::panic_report;
use crate::failure::{Failure, Problem, RESOURCE_REMEDY, Who};
use crate::host;
use crate::host::GuestState;
use crate::limits::Limits;
use crate::lock_down::{LockDownError, LockDownLevel, LockDownReport, Network, landlock, process, seccomp};
use crate::rpc::method::Method;
use crate::sandbox::call_clock::CallClock;
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

/// Whether Landlock restricts the process.
enum LandlockState {
    /// The lock-down is turned off.
    Off,
    /// Landlock was applied, or the kernel cannot apply it.
    Tried(Result<landlock::Landlock, LockDownError>),
}

/// Reads wasm from stdin and writes frames to stdout. `limits` are those of the operator, as JSON.
pub fn compile_guest(limits: &str, hardening: LockDownLevel) -> std::io::Result<()> {
    startup::secure_process();
    panic_report::install();
    let limits: Limits = serde_json::from_str(limits)?;
    let mut out = std::io::stdout().lock();
    if let Err(error) = restrict_process(limits.compile_mib, limits.compile_seconds) {
        let remedy = "run the CPI as a user other than root, or allow root to change its user (setuid, setgroups)";
        let what = "the guest was not compiled, because the compiling process cannot drop its privileges";
        let failure = config_failure(format!("{what}: {error}; {remedy}"));
        return write_frame(&mut out, Frame::Error, &serde_json::to_vec(&failure)?);
    }
    process::open_random_source();
    // The process is restricted before it compiles, because compiling starts threads. The compiler
    // reads no file.
    let landlock = match hardening {
        LockDownLevel::Off => LandlockState::Off,
        _ => LandlockState::Tried(landlock::restrict(&Network::None)),
    };
    let answer = panic_report::catch(|| compile_and_describe(limits, hardening, landlock, &mut out));
    match answer {
        Ok(description) => write_frame(&mut out, Frame::Description, &serde_json::to_vec(&description)?),
        Err(failure) => write_frame(&mut out, Frame::Error, &serde_json::to_vec(&failure)?),
    }?;
    out.flush()
}

/// Reads and compiles the guest, sends the artifact, and runs `describe` within the operator's
/// limits. Only its time is fixed.
fn compile_and_describe(
    limits: Limits,
    hardening: LockDownLevel,
    landlock: LandlockState,
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
    let (engine, component, declarations, artifact) = compile(&wasm, &limits)?;
    let declared = Declared { needs: declarations.needs, has_names: declarations.has_names };
    let declared = serde_json::to_vec(&declared).map_err(|error| own_failure("write its answer", error))?;
    for (frame, bytes) in [(Frame::Declared, &declared), (Frame::Artifact, &artifact)] {
        write_frame(out, frame, bytes).map_err(|error| own_failure("write its answer", error))?;
    }
    watchdog::start(&engine).map_err(|error| own_failure("start its timer", error))?;
    lock_down(hardening, landlock)?;
    describe(&engine, &component, &limits)
}

/// Lowers the limits of file size, CPU time and memory, and drops all privileges. A process of root also changes
/// its user to `nobody`.
fn restrict_process(compile_mib: u64, compile_seconds: u64) -> std::io::Result<()> {
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
fn lock_down(hardening: LockDownLevel, landlock: LandlockState) -> Result<(), ChildFailure> {
    if let LandlockState::Tried(landlock) = landlock {
        let seccomp = seccomp::install(&Network::None, seccomp::Writes::Nothing, seccomp::Threads::All);
        let report =
            LockDownReport { no_new_privs: Ok(()), capabilities: Ok(()), landlock, seccomp, network: Network::None };
        if hardening == LockDownLevel::Required {
            report.ensure_complete().map_err(|failure| config_failure(failure.message))?;
        }
    }
    #[cfg(feature = "mutation-testing")]
    crate::lock_down::hook::run(crate::lock_down::hook::Role::Child);
    Ok(())
}

fn config_failure(message: String) -> ChildFailure {
    ChildFailure::from(Failure::config(message))
}

/// Returns a failure of this process, for which no file of the operator is to blame.
fn own_failure(what: &str, error: impl std::fmt::Display) -> ChildFailure {
    Failure::runtime(format!("the process that compiles the guest cannot {what}: {error}; {RESOURCE_REMEDY}")).into()
}

/// Returns the failure for an error of the engine: the memory limit if the kernel had no more memory,
/// and `otherwise` for all others.
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

fn compile(wasm: &[u8], limits: &Limits) -> Result<(Engine, Component, Declarations, Vec<u8>), ChildFailure> {
    let declarations =
        declarations::inspect(wasm).map_err(|problems| declarations::to_failure("the guest", &problems))?;
    let unfit = |error| {
        let remedy = "send this message to the guest's author, or go back to the version that worked";
        config_failure(format!("the guest cannot be compiled: {error:#}; {remedy}"))
    };
    let failed = |error| classify(error, limits, unfit);
    let engine = engine::build(limits).map_err(failed)?;
    let artifact = engine.precompile_component(wasm).map_err(failed)?;
    // SAFETY: this process compiled the artifact just now, and no guest code has run.
    #[allow(unsafe_code)]
    let component = unsafe { Component::deserialize(&engine, &artifact) }.map_err(failed)?;
    Ok((engine, component, declarations, artifact))
}

fn describe(engine: &Engine, component: &Component, limits: &Limits) -> Result<Described, ChildFailure> {
    let unfit = |error| {
        config_failure(format!(
            "the guest does not fit the world bosh:cpi: {error:#}; build it with this runtime's SDK"
        ))
    };
    let failed = |error| classify(error, limits, unfit);
    let clock = Arc::new(CallClock::new(limits, Method::Info));
    let mut store = GuestState::bare(limits, Arc::clone(&clock)).into_store(engine, limits);
    let mut linker = Linker::new(engine);
    // The state has no capabilities: `http`, `agent`, `registry` and `image` deny everything.
    host::link(&mut linker, component).map_err(failed)?;
    let pre = CpiPre::new(linker.instantiate_pre(component).map_err(failed)?).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| own_failure("start its async runtime", error))?;
    let described = runtime.block_on(async {
        tokio::select! {
            described = call_describe(&pre, &mut store) => described,
            () = clock.cleanup_over() => Err(wasmtime::Error::msg(format!("it took longer than {} s", limits.wall_seconds))),
            never = watchdog::check_periodically(&clock) => match never {},
        }
    });
    let trapped = |error| {
        let failure = trap::explain(error, clock.end_reason(), "describe", limits);
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
    pre: &CpiPre<GuestState>,
    store: &mut Store<GuestState>,
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
            let failure = classify(error, &Limits::default(), |error| config_failure(error.to_string()));
            assert_eq!(failure.who == Who::Limit, expected, "{failure:?}");
        }
    }
}
