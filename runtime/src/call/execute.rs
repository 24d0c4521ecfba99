//! Fifth step: locks the process down and runs the guest's method.

use crate::audit::Used;
use crate::bindings::CpiPre;
use crate::bindings::bosh::cpi::types;
use crate::call::assemble::{Assembled, CallCapabilities};
use crate::call::invoke::{InvokeError, invoke};
use crate::call::load::LoadedGuest;
use crate::call::{CallError, leave_to_exit};
use crate::config::{Config, ConfigSource};
use crate::effective_policy;
use crate::failure::{Cause, Failure, RESOURCE_REMEDY, Who};
use crate::host::{self, GuestState};
use crate::limits::Limits;
use crate::lock_down::{self, CallResources, LockDownLevel, Network};
use crate::net::gate::Gate;
use crate::net::resolver::Resolver;
use crate::rpc::answer::Answer;
use crate::rpc::arguments::Call;
use crate::rpc::request::Request;
use crate::sandbox::call_clock::{CallClock, CleanupOver};
use crate::sandbox::{trap, watchdog};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;
use wasm_cpi_policy::Policy;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// A call whose guest returned, trapped or was stopped.
pub struct Executed {
    pub answer: Result<Answer, NoAnswer>,
    pub used: Used,
    pub run: FinishedRun,
}

/// The reason why a guest that ran has no answer.
pub enum NoAnswer {
    /// The guest returned its own error.
    Guest(types::Error),
    /// The guest could not finish, or its answer does not follow the contract.
    Failed(Failure),
    /// The guest was stopped when its time for cleaning up was over. Holds the failure that words why
    /// the call had to end: a deadline, a signal, a lost caller or a leak.
    Stopped(Failure),
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        NoAnswer::Failed(failure)
    }
}

impl From<InvokeError> for NoAnswer {
    fn from(error: InvokeError) -> Self {
        match error {
            InvokeError::Guest(error) => NoAnswer::Guest(error),
            InvokeError::Invalid(failure) => NoAnswer::Failed(failure),
        }
    }
}

/// The call of a guest that has ended, with what is needed to judge its answer.
pub struct FinishedRun {
    /// The cause of the last failed host call, for operators only; empty if it succeeded.
    pub last_host_call_cause: Cause,
    pub ended: EndedCall,
    pub capabilities: CallCapabilities,
    /// The instance that ran, with its capabilities.
    pub store: Store<GuestState>,
    pub guest: LinkedGuest,
}

/// What was asked for, and the settings that apply.
pub struct EndedCall {
    pub request: Request,
    pub call: Call,
    pub clock: Arc<CallClock>,
    pub limits: Limits,
    pub source: ConfigSource,
    /// The directory of prepared guests, which also holds the recorded leaks.
    pub cache: PathBuf,
}

/// The linked guest and what it runs on; it can run once more.
pub struct LinkedGuest {
    pub engine: Engine,
    pub pre: CpiPre<GuestState>,
    pub runtime: Runtime,
}

/// Locks the process down and runs the guest's method in a fresh store. Blocks this thread.
pub fn execute(assembled: Assembled) -> Result<Executed, CallError> {
    let Assembled { loaded, capabilities, state } = assembled;
    let LoadedGuest { config, request, call, engine, component, clock, .. } = loaded;
    let cannot_start =
        |error: std::io::Error| Failure::runtime(format!("the call cannot start: {error}; {RESOURCE_REMEDY}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot_start)?;
    watchdog::start(&engine).map_err(cannot_start)?;
    let hardening = lock_down(&config, &capabilities.policy, &capabilities.gate)?;
    let pre = link(&engine, &component)?;
    let guest = LinkedGuest { engine, pre, runtime };
    let mut store = state.into_store(&guest.engine, &config.limits);
    let answer = run(&guest, &mut store, &call, &clock, &config.limits);
    let state = store.data();
    let last_failure = state.capabilities.as_ref().map(|capabilities| capabilities.last_failure.get());
    let last_host_call_cause = last_failure.unwrap_or_default();
    let (usage, counts) = (state.meter.reading(), state.counts);
    let used = Used {
        wall: clock.elapsed(),
        wall_limit: clock.wall_limit(),
        usage,
        network: capabilities.gate.counts(),
        counts,
        hardening,
    };
    leave_to_exit(component);
    let Config { limits, source, cache, .. } = config;
    let ended = EndedCall { request, call, clock, limits, source, cache };
    let run = FinishedRun { last_host_call_cause, ended, capabilities, store, guest };
    Ok(Executed { answer, used, run })
}

/// Runs the method in a fresh instance until it returns, traps or is stopped.
pub(super) fn run(
    guest: &LinkedGuest,
    store: &mut Store<GuestState>,
    call: &Call,
    clock: &CallClock,
    limits: &Limits,
) -> Result<Answer, NoAnswer> {
    let invoked = async {
        let instance = guest.pre.instantiate_async(&mut *store).await?;
        invoke(&instance, &mut *store, call).await
    };
    let ended = guest.runtime.block_on(async {
        tokio::select! {
            ended = invoked => ended,
            () = clock.cleanup_over() => Err(CleanupOver.into()),
            never = watchdog::check_periodically(clock) => match never {},
        }
    });
    let answer = match ended {
        Ok(invoked) => invoked.map_err(NoAnswer::from),
        #[cfg(feature = "mutation-testing")]
        Err(error) if host::mutants::exit_is_success(&error) => Ok(Answer::Nothing),
        Err(error) => {
            let stopped = error.is::<CleanupOver>();
            let failure = trap::explain(error, clock.end_reason(), call.method().name(), limits);
            Err(match stopped {
                true => NoAnswer::Stopped(failure),
                false => NoAnswer::Failed(with_last_error(failure, store.data())),
            })
        }
    };
    store.data().finish_log();
    answer
}

fn link(engine: &Engine, component: &Component) -> Result<CpiPre<GuestState>, Failure> {
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
        Network::Ports(_) if config.hardening != LockDownLevel::Off => {
            Resolver::open_system_files() + gate.open_files()
        }
        _ => 0,
    };
    let resources = CallResources { network, files, writes_tokens: gate.keeps_tokens(), limits: &config.limits };
    let report = lock_down::apply(config.hardening, resources)?;
    Ok(report.map_or_else(|| LockDownLevel::Off.to_string(), |report| report.to_string()))
}

/// Adds the guest's last logged error to the failure, because a panic is only a trap to the
/// engine and its message is in the guest's log.
fn with_last_error(failure: Failure, state: &GuestState) -> Failure {
    match state.capabilities.as_ref().and_then(|capabilities| capabilities.log.last_error()) {
        Some(said) if failure.who == Who::Guest => {
            Failure { message: format!("{}; its last error was: {said}", failure.message), ..failure }
        }
        _ => failure,
    }
}
