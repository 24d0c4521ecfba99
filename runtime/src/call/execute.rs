//! Fifth step: locks the process down and runs the guest's method.

use crate::agent::AgentSession;
use crate::audit::Used;
use crate::bindings::CpiPre;
use crate::call::CallError;
use crate::call::assemble::Assembled;
use crate::call::invoke::{InvokeError, Invoked, invoke};
use crate::call::load::LoadedGuest;
use crate::config::{Config, ConfigArg};
use crate::effective_policy;
use crate::failure::{Failure, Who};
use crate::hardening::{self, CallResources, Hardening, Network};
use crate::host::{self, State};
use crate::leak_latch::LeakLatch;
use crate::limits::Limits;
use crate::net::gate::Gate;
use crate::net::resolver::Resolver;
#[cfg(feature = "mutation-testing")]
use crate::rpc::answer::Answer;
use crate::rpc::arguments::Call;
use crate::rpc::request::Request;
use crate::sandbox::ending::{CleanupOver, Ending};
use crate::sandbox::{trap, watchdog};
use std::sync::Arc;
use tokio::runtime::Runtime;
use wasm_cpi_policy::Policy;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// A call whose guest returned, trapped or was stopped.
pub struct Executed {
    /// The guest's answer, or why there is none.
    pub answer: Invoked,
    pub used: Used,
    /// Why the guest's last host call failed, for people; empty if the guest knows.
    pub cause: String,
    pub limits: Limits,
    pub source: ConfigArg,
    pub request: Request,
    pub call: Call,
    pub policy: Arc<Policy>,
    pub gate: Arc<Gate>,
    pub agent: Arc<AgentSession>,
    pub latch: Option<Arc<LeakLatch>>,
    pub ending: Arc<Ending>,
    /// The instance that ran, with its capabilities.
    pub store: Store<State>,
    pub sandbox: Sandbox,
}

/// The locked-down process and the linked guest, which can run once more.
pub struct Sandbox {
    pub engine: Engine,
    pub guest: CpiPre<State>,
    pub runtime: Runtime,
}

/// Locks the process down and runs the guest's method in a fresh store. Blocks this thread.
pub fn execute(assembled: Assembled) -> Result<Executed, CallError> {
    let Assembled { loaded, policy, gate, agent, latch, state } = assembled;
    let LoadedGuest { config, request, call, engine, component, ending, .. } = loaded;
    let cannot_start = |error: std::io::Error| Failure::runtime(format!("the call cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot_start)?;
    watchdog::start(&engine).map_err(cannot_start)?;
    let hardening = lock_down(&config, &policy, &gate)?;
    let guest = link(&engine, &component)?;
    let sandbox = Sandbox { engine, guest, runtime };
    let mut store = state.into_store(&sandbox.engine, &config.limits);
    let answer = run(&sandbox, &mut store, &call, &ending, &config.limits);
    let state = store.data();
    let cause = state.host.as_ref().map(|host| host.log.last_cause()).unwrap_or_default();
    let (usage, counts) = (state.meter.usage(), state.counts);
    let used = Used { wall: ending.elapsed(), usage, network: gate.usage(), counts, hardening };
    // The process ends after this call, so dropping it would only delay the response.
    std::mem::forget(component);
    let Config { limits, source, .. } = config;
    Ok(Executed {
        answer,
        used,
        cause,
        limits,
        source,
        request,
        call,
        policy,
        gate,
        agent,
        latch,
        ending,
        store,
        sandbox,
    })
}

/// Runs the method of a fresh instance, and returns its answer or why there is none.
pub(super) fn run(
    sandbox: &Sandbox,
    store: &mut Store<State>,
    call: &Call,
    ending: &Ending,
    limits: &Limits,
) -> Invoked {
    let answer = match run_guest(sandbox, store, call, ending) {
        RunOutcome::Returned(answer) => answer,
        #[cfg(feature = "mutation-testing")]
        RunOutcome::Trapped(error) if host::mutants::exit_is_success(&error) => Ok(Answer::Nothing),
        RunOutcome::Trapped(error) => {
            let stopped = error.is::<CleanupOver>();
            let failure = trap::explain(error, ending.reason(), call.method().name(), limits);
            Err(match stopped {
                true => InvokeError::Stopped(failure),
                false => InvokeError::Failure(with_last_error(failure, store.data())),
            })
        }
        RunOutcome::Stopped => Err(match ending.reason() {
            Some(why) => InvokeError::Stopped(why.failure()),
            None => InvokeError::Failure(Failure::runtime(
                "the call was stopped for an unknown reason; this is a bug in wasm-cpi, please report it",
            )),
        }),
    };
    store.data().finish_log();
    answer
}

fn link(engine: &Engine, component: &Component) -> Result<CpiPre<State>, Failure> {
    let unfit = |error: wasmtime::Error| {
        Failure::config(format!("the guest does not fit this runtime: {error:#}; build it with this runtime's SDK"))
    };
    let mut linker = Linker::new(engine);
    host::link(&mut linker, component).map_err(unfit)?;
    CpiPre::new(linker.instantiate_pre(component).map_err(unfit)?).map_err(unfit)
}

/// Opens the files that the call may still read, then locks the process down. No other thread
/// may run.
fn lock_down(config: &Config, policy: &Policy, gate: &Gate) -> Result<String, Failure> {
    let network = effective_policy::network(config, policy);
    let files = match &network {
        Network::Ports(_) if config.hardening != Hardening::Off => Resolver::open_system_files() + gate.open_files(),
        _ => 0,
    };
    let report = hardening::lock_down(config.hardening, CallResources { network, files, limits: &config.limits })?;
    Ok(report.map_or_else(|| Hardening::Off.to_string(), |report| report.to_string()))
}

/// How a guest's run ended.
enum RunOutcome {
    /// The guest's export returned.
    Returned(Invoked),
    Trapped(wasmtime::Error),
    /// The time for cleaning up was over, so the guest was stopped.
    Stopped,
}

fn run_guest(sandbox: &Sandbox, store: &mut Store<State>, call: &Call, ending: &Ending) -> RunOutcome {
    let invoked = async {
        let instance = sandbox.guest.instantiate_async(&mut *store).await?;
        invoke(&instance, store, call).await
    };
    sandbox.runtime.block_on(async {
        tokio::select! {
            ended = invoked => ended.map_or_else(RunOutcome::Trapped, RunOutcome::Returned),
            () = ending.cleanup_over() => RunOutcome::Stopped,
            never = watchdog::watch(ending) => match never {},
        }
    })
}

/// Adds the guest's last logged error to the failure, because a panic is only a trap to the
/// engine and its message is in the guest's log.
fn with_last_error(failure: Failure, state: &State) -> Failure {
    match state.host.as_ref().and_then(|host| host.log.last_error()) {
        Some(said) if failure.who == Who::Guest => {
            Failure { message: format!("{}; its last error was: {said}", failure.message), ..failure }
        }
        _ => failure,
    }
}
