//! Fifth step: the process gives up its rights, and the guest's method runs.

use crate::agent::AgentSession;
use crate::audit::Used;
use crate::bindings::CpiPre;
use crate::call::CallError;
use crate::call::assemble::Assembled;
use crate::call::invoke::{InvokeError, Invoked, invoke};
use crate::call::load::LoadedGuest;
use crate::config::Config;
use crate::effective_policy;
use crate::failure::{Failure, Who};
use crate::hardening::{self, Hardening, Network, Remaining};
use crate::host::{self, State};
use crate::limits::Limits;
use crate::net::gate::Gate;
use crate::net::resolve::Resolver;
#[cfg(feature = "holes")]
use crate::rpc::answer::Answer;
use crate::rpc::arguments::Call;
use crate::rpc::request::Request;
use crate::sandbox::ending::Ending;
use crate::sandbox::{trap, watchdog};
use std::sync::Arc;
use tokio::runtime::Runtime;
use wasm_cpi_policy::Policy;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// A call whose guest has ended, one way or another.
pub struct Executed {
    /// What the guest answered, or why it did not.
    pub answer: Invoked,
    pub used: Used,
    pub limits: Limits,
    pub request: Request,
    pub call: Call,
    pub policy: Arc<Policy>,
    pub gate: Arc<Gate>,
    pub agent: Arc<AgentSession>,
    pub ending: Arc<Ending>,
    pub runtime: Runtime,
}

/// Locks the process down and runs the guest's method in a fresh store. Blocks this thread.
pub fn execute(assembled: Assembled) -> Result<Executed, CallError> {
    let Assembled { loaded, policy, gate, agent, state } = assembled;
    let LoadedGuest { config, request, call, engine, component, ending, .. } = loaded;
    let cannot_start = |error: std::io::Error| Failure::runtime(format!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot_start)?;
    watchdog::start(&engine).map_err(cannot_start)?;
    let hardening = lock_down(&config, &policy, &gate)?;
    let guest = link(&engine, &component)?;
    let mut store = state.into_store(&engine, &config.limits);
    let answer = match run(&runtime, &guest, &mut store, &call, &ending) {
        Ended::Returned(answer) => answer,
        #[cfg(feature = "holes")]
        Ended::Trapped(error) if host::mutants::exit_counts(&error) => Ok(Answer::Nothing),
        Ended::Trapped(error) => {
            let failure = trap::explain(error, ending.why(), call.method().name(), &config.limits);
            Err(InvokeError::Failure(with_last_words(failure, store.data())))
        }
        Ended::Stopped => Err(InvokeError::Failure(match ending.why() {
            Some(why) => why.failure(),
            None => Failure::runtime("the call ended without a reason"),
        })),
    };
    let state = store.data();
    state.finish_log();
    let (usage, counts) = (state.meter.usage(), state.counts);
    let used = Used { wall: ending.elapsed(), usage, network: gate.usage(), counts, hardening };
    // A call is a process: to drop all this would only delay the response.
    std::mem::forget((store, component, engine));
    Ok(Executed { answer, used, limits: config.limits, request, call, policy, gate, agent, ending, runtime })
}

fn link(engine: &Engine, component: &Component) -> Result<CpiPre<State>, Failure> {
    let unfit = |error: wasmtime::Error| {
        Failure::config(format!("the guest does not fit this runtime: {error:#}; build it with this runtime's SDK"))
    };
    let mut linker = Linker::new(engine);
    host::link(&mut linker, component).map_err(unfit)?;
    CpiPre::new(linker.instantiate_pre(component).map_err(unfit)?).map_err(unfit)
}

/// The last step before the guest's code: what it may still need is opened, and then
/// nothing can be any more. No other thread runs.
fn lock_down(config: &Config, policy: &Policy, gate: &Gate) -> Result<String, Failure> {
    let network = effective_policy::network(config, policy);
    let files = match &network {
        Network::Ports(_) if config.hardening != Hardening::Off => Resolver::hold_system() + gate.hold_files(),
        _ => 0,
    };
    let walls = hardening::lock_down(config.hardening, Remaining { network, files, limits: &config.limits })?;
    Ok(walls.map_or_else(|| Hardening::Off.to_string(), |walls| walls.to_string()))
}

/// How a guest's run ended.
enum Ended {
    /// The export returned.
    Returned(Invoked),
    Trapped(wasmtime::Error),
    /// The time for cleaning up was over.
    Stopped,
}

fn run(runtime: &Runtime, guest: &CpiPre<State>, store: &mut Store<State>, call: &Call, ending: &Ending) -> Ended {
    let invoked = async {
        let instance = guest.instantiate_async(&mut *store).await?;
        invoke(&instance, store, call).await
    };
    runtime.block_on(async {
        tokio::select! {
            ended = invoked => ended.map_or_else(Ended::Trapped, Ended::Returned),
            () = ending.over() => Ended::Stopped,
            never = watchdog::watch(ending) => match never {},
        }
    })
}

/// A panic is only a trap to the engine; the guest's log has what it was about.
fn with_last_words(failure: Failure, state: &State) -> Failure {
    match state.host.as_ref().and_then(|host| host.log.last_error()) {
        Some(said) if failure.who == Who::Guest => {
            Failure { message: format!("{}; it said: {said}", failure.message), ..failure }
        }
        _ => failure,
    }
}
